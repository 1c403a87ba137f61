/** What each evaluation reached, and what that cost in money and time. */
import { Link } from "react-router";
import type { ComparedEvaluation } from "../../api/shapes";
import { EvaluationBadge } from "../../design/badge";
import { count, dollars, ratio } from "../../design/format";
import { type Column, Table } from "../../design/table";

const money = (usd: number | null) => (usd === null ? "—" : dollars(usd));
const missing = (row: ComparedEvaluation) => Object.entries(row.statistics?.missing ?? {}).map(([reason, number]) => `${count(number)} ${reason}`).join(", ");

const COLUMNS: Column<ComparedEvaluation>[] = [
  {
    name: "Model",
    sortBy: (row) => row.evaluation.model_name,
    cell: (row) => (
      <>
        <Link to={`/evaluations/${row.evaluation.evaluation_id}`}>{row.evaluation.model_name || row.evaluation.name}</Link>
        {missing(row) && <div className="muted small">missing: {missing(row)}</div>}
      </>
    ),
  },
  { name: "State", cell: (row) => <EvaluationBadge status={row.evaluation.status} /> },
  {
    name: "Mean reward",
    kind: "number",
    sortBy: (row) => row.quality.mean,
    cell: (row) => (
      <>
        {ratio(row.quality.mean, 3)}
        {row.statistics?.ci_low != null && <div className="muted small">{ratio(row.statistics.ci_low, 3)} to {ratio(row.statistics.ci_high, 3)}</div>}
      </>
    ),
  },
  { name: "pass@k", cell: (row) => row.statistics?.pass_rates.map((rate) => `@${rate.k} ${ratio(rate.any_of)}`).join(" ") ?? "—" },
  { name: "Per sample", kind: "number", sortBy: (row) => row.quality.cost_per_sample_usd, cell: (row) => <>{row.quality.best_for_cost && <span title="Nobody is better and cheaper">★ </span>}{money(row.quality.cost_per_sample_usd)}</> },
  { name: "Total", kind: "number", sortBy: (row) => row.quality.cost_usd, cell: (row) => <span title={row.quality.cost_source === "prices" ? "usage × the prices that were stated" : row.quality.cost_source === "bill" ? "as billed" : undefined}>{money(row.quality.cost_usd)}</span> },
  { name: "Median time", kind: "number", sortBy: (row) => row.quality.duration_median_s, cell: (row) => <>{row.quality.best_for_time && <span title="Nobody is better and faster">★ </span>}{row.quality.duration_median_s === null ? "—" : `${ratio(row.quality.duration_median_s, 1)} s`}</> },
];

export function QualityTable({ rows }: { rows: ComparedEvaluation[] }) {
  return <Table caption="Quality against dollars" columns={COLUMNS} rows={rows} rowKey={(row) => row.evaluation.evaluation_id} />;
}

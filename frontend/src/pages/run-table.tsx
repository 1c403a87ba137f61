/** Runs in rows: state, where they are, how well they do and what they have cost. */
import { Link } from "react-router";
import type { Run } from "../api/shapes";
import { RunBadge } from "../design/badge";
import { type Column, Table } from "../design/table";
import { Age } from "../design/time";

export const environmentsOf = (run: Run) => run.environments.map((environment) => String(environment.id));

const COLUMNS: Column<Run>[] = [
  { name: "Run", sortBy: (run) => run.name, cell: (run) => <Link to={`/runs/${run.id}`}>{run.name || run.id}</Link> },
  {
    name: "State",
    sortBy: (run) => run.status,
    cell: (run) => <><RunBadge status={run.status} />{run.queueReason && <div className="muted small">{run.queueReason}</div>}</>,
  },
  { name: "Step", kind: "number", sortBy: (run) => run.step / run.maxSteps, cell: (run) => <span className="nowrap">{run.step} / {run.maxSteps}</span> },
  { name: "Model", sortBy: (run) => run.baseModel, cell: (run) => run.baseModel },
  { name: "Environment", sortBy: (run) => environmentsOf(run).join(), cell: (run) => <span className="muted truncate" title={environmentsOf(run).join(", ")}>{environmentsOf(run).join(", ")}</span> },
  { name: "Age", sortBy: (run) => run.createdAt, cell: (run) => <Age of={run.createdAt} /> },
];

export function RunTable({ runs, isStale }: { runs: Run[]; isStale?: boolean }) {
  return <Table caption="Runs" columns={COLUMNS} rows={runs} rowKey={(run) => run.id} isStale={isStale} />;
}

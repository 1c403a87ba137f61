/** Runs in rows: state, where they are, how well they do and what they have cost. */
import { Link } from "react-router";
import type { Run } from "../api/shapes";
import { RunBadge } from "../design/badge";
import { microDollars, ratio } from "../design/format";
import { type Column, Table } from "../design/table";
import { Age } from "../design/time";

const named = (refs: unknown) => (Array.isArray(refs) ? refs : []).map((ref: { id: unknown }) => String(ref.id));

/** What a run learns from: its environments, then its datasets. */
export const sourcesOf = (run: Run) => [...named(run.environments), ...named(run.effectiveConfig.datasets)];

const COLUMNS: Column<Run>[] = [
  {
    name: "Run",
    sortBy: (run) => run.name,
    cell: (run) => (
      <>
        <Link to={`/runs/${run.id}`}>{run.name || run.id}</Link>
        <div className="muted small truncate" title={sourcesOf(run).join(", ")}>{sourcesOf(run).join(", ")}</div>
      </>
    ),
  },
  {
    name: "State",
    sortBy: (run) => run.status,
    cell: (run) => <><RunBadge status={run.status} />{run.queueReason && <div className="muted small">{run.queueReason}</div>}</>,
  },
  { name: "Step", kind: "number", sortBy: (run) => run.step / (run.maxSteps || Infinity), cell: (run) => <span className="nowrap">{run.step} / {run.maxSteps || "—"}</span> },
  { name: "Reward", kind: "number", sortBy: (run) => run.latestReward, cell: (run) => ratio(run.latestReward) },
  { name: "Cost", kind: "number", sortBy: (run) => run.costMicrousd, cell: (run) => microDollars(run.costMicrousd ?? 0) },
  { name: "Model", sortBy: (run) => run.baseModel, cell: (run) => run.baseModel },
  { name: "Age", sortBy: (run) => run.createdAt, cell: (run) => <Age of={run.createdAt} /> },
];

export function RunTable({ runs, isStale }: { runs: Run[]; isStale?: boolean }) {
  return <Table caption="Runs" columns={COLUMNS} rows={runs} rowKey={(run) => run.id} isStale={isStale} />;
}

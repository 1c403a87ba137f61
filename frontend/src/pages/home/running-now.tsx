/** The runs at work, each with its reward as it goes. */
import { Link } from "react-router";
import type { Run } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { RunBadge } from "../../design/badge";
import { Card } from "../../design/card";
import { ratio } from "../../design/format";
import { Spark } from "../../design/spark";
import { Age } from "../../design/time";
import { sourcesOf } from "../run-table";

const REFRESH_MS = 3_000;
const POINTS_MAX = 200;

export function RunningNow({ runs }: { runs: Run[] }) {
  return (
    <div className="columns">
      {runs.map((run) => <RunningRun key={run.id} run={run} />)}
    </div>
  );
}

function rewardsOf(metrics: Record<string, unknown>[]): number[] {
  return metrics.map((point) => point.reward).filter((reward): reward is number => typeof reward === "number").slice(-POINTS_MAX);
}

function RunningRun({ run }: { run: Run }) {
  const query = useQuery("/api/v1/rft/runs/{run_id}/metrics", { path: { run_id: run.id }, query: { min_step: Math.max(0, run.step - POINTS_MAX) } }, REFRESH_MS);
  const rewards = rewardsOf(query.data?.metrics ?? []);
  return (
    <Card title={<Link to={`/runs/${run.id}`}>{run.name || run.id}</Link>} note={sourcesOf(run).join(", ")} actions={<RunBadge status={run.status} />}>
      <div className="between">
        <div className="stack tight">
          <span className="figure">{ratio(rewards.at(-1))}</span>
          <span className="muted small">mean reward, step {run.step}{run.maxSteps ? ` of ${run.maxSteps}` : ""}</span>
        </div>
        <Spark values={rewards} label={`Reward over ${rewards.length} steps`} />
      </div>
      <progress max={run.maxSteps || run.step || 1} value={run.step} aria-label="Steps done" />
      <span className="muted small">{run.queueReason ?? <>Begun <Age of={run.startedAt ?? run.createdAt} /></>}</span>
    </Card>
  );
}

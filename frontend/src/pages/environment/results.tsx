/** What the team has done with the environment: the models that it evaluated, the best first, and the adapters it trained. */
import { Link } from "react-router";
import type { Adapter, LeaderboardRow } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { DeploymentBadge } from "../../design/badge";
import { Card } from "../../design/card";
import { Empty } from "../../design/empty";
import { ratio } from "../../design/format";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Age } from "../../design/time";

const MODELS: Column<LeaderboardRow>[] = [
  { name: "Model", sortBy: (row) => row.model, cell: (row) => <Link to={`/evaluations/${row.evaluation_id}`}>{row.model || "not named"}</Link> },
  { name: "Mean reward", kind: "number", sortBy: (row) => row.score, cell: (row) => ratio(row.score ?? null, 3) },
  { name: "Samples", kind: "number", sortBy: (row) => row.samples_count, cell: (row) => row.samples_count },
  { name: "Run", cell: (row) => (row.is_hosted ? "here" : "elsewhere") },
  { name: "Evaluated", sortBy: (row) => row.evaluated_at, cell: (row) => <Age of={row.evaluated_at} /> },
];
const ADAPTERS: Column<Adapter>[] = [
  { name: "Adapter", sortBy: (row) => row.displayName, cell: (row) => <Link to={`/runs/${row.rftRunId}`}>{row.displayName}</Link> },
  { name: "Base model", sortBy: (row) => row.baseModel, cell: (row) => <span className="mono">{row.baseModel}</span> },
  { name: "Step", kind: "number", sortBy: (row) => row.step, cell: (row) => row.step },
  { name: "Served", sortBy: (row) => row.deploymentStatus, cell: (row) => <DeploymentBadge status={row.deploymentStatus} /> },
];

export function ResultsPanel({ owner, name }: { owner: string; name: string }) {
  const models = useQuery("/api/v1/environmentshub/{owner}/{name}/leaderboard", { path: { owner, name } });
  const adapters = useQuery("/api/v1/rft/adapters", { query: { environment: `${owner}/${name}` } });
  return (
    <>
      <Card title="Leaderboard of your team">
        <Problem of={models.problem} />
        {!models.data && !models.problem && <Skeleton what="the leaderboard" />}
        {models.data && (models.data.data.length ? <Table caption="Models by mean reward" columns={MODELS} rows={models.data.data} rowKey={(row) => row.evaluation_id} /> : <Empty title="Your team has not evaluated a model on it." command={`prime eval run ${owner}/${name} -m tiny -n 64`} />)}
      </Card>
      <Card title="Adapters that your team trained with it">
        <Problem of={adapters.problem} />
        {!adapters.data && !adapters.problem && <Skeleton what="adapters" />}
        {adapters.data && (adapters.data.adapters.length ? <Table caption="Adapters" columns={ADAPTERS} rows={adapters.data.adapters} rowKey={(row) => row.id} /> : <Empty title="None yet. The tab “Use it” has the lines to train one." />)}
      </Card>
    </>
  );
}

/** What came of the environment: models evaluated on it, the best first, the team's adapters, and what stands on it. */
import { Link } from "react-router";
import type { Adapter, LeaderboardRow, RelatedRow } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { Badge, DeploymentBadge, ReleaseBadge } from "../../design/badge";
import { Card } from "../../design/card";
import { Empty } from "../../design/empty";
import { dollars, ratio } from "../../design/format";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Age } from "../../design/time";

const MODELS: Column<LeaderboardRow>[] = [
  { name: "Model", sortBy: (row) => row.model, cell: (row) => <Link to={`/evaluations/${row.evaluation_id}`}>{row.model || "not named"}</Link> },
  { name: "Team", sortBy: (row) => row.team, cell: (row) => <>{row.team} {row.is_own && <Badge isPlain>{row.is_public ? "yours, published" : "yours, not published"}</Badge>}</> },
  { name: "Mean reward", kind: "number", sortBy: (row) => row.score, cell: (row) => ratio(row.score, 3) },
  { name: "95 %", kind: "number", cell: (row) => (row.ci_low == null ? "—" : `${ratio(row.ci_low, 3)} to ${ratio(row.ci_high, 3)}`) },
  { name: "Samples", kind: "number", sortBy: (row) => row.samples_count, cell: (row) => row.samples_count },
  { name: "Cost of a sample", kind: "number", sortBy: (row) => row.cost_per_sample_usd, cell: (row) => (row.cost_per_sample_usd == null ? "—" : dollars(row.cost_per_sample_usd)) },
  { name: "Mean of all", kind: "number", sortBy: (row) => row.mean_score, cell: (row) => `${ratio(row.mean_score, 3)} of ${row.evaluations_count}` },
  { name: "Measured", cell: (row) => (row.is_hosted ? "here" : "as its team says") },
  { name: "Evaluated", sortBy: (row) => row.evaluated_at, cell: (row) => <Age of={row.evaluated_at} /> },
];
const ADAPTERS: Column<Adapter>[] = [
  { name: "Adapter", sortBy: (row) => row.displayName, cell: (row) => <Link to={`/runs/${row.rftRunId}`}>{row.displayName}</Link> },
  { name: "Base model", sortBy: (row) => row.baseModel, cell: (row) => <span className="mono">{row.baseModel}</span> },
  { name: "Step", kind: "number", sortBy: (row) => row.step, cell: (row) => row.step },
  { name: "Served", sortBy: (row) => row.deploymentStatus, cell: (row) => <DeploymentBadge status={row.deploymentStatus} /> },
];

const RELATED: Column<RelatedRow>[] = [
  { name: "Environment", sortBy: (row) => row.environment, cell: (row) => <Link to={`/environments/${row.environment}`}>{row.environment}</Link> },
  { name: "Version", cell: (row) => <span className="mono">{row.version ?? "—"}</span> },
  { name: "Check", cell: (row) => (row.badge ? <ReleaseBadge state={row.badge} /> : "—") },
  { name: "Description", cell: (row) => row.description },
];

export function ResultsPanel({ owner, name }: { owner: string; name: string }) {
  const models = useQuery("/api/v1/environmentshub/{owner}/{name}/leaderboard", { path: { owner, name } });
  const adapters = useQuery("/api/v1/rft/adapters", { query: { environment: `${owner}/${name}` } });
  const related = useQuery("/api/v1/environmentshub/{owner}/{name}/related", { path: { owner, name } });
  return (
    <>
      <Card title="Leaderboard">
        <Problem of={models.problem} />
        {!models.data && !models.problem && <Skeleton what="the leaderboard" />}
        {models.data && (models.data.data.length ? <Table caption="Models by mean reward" columns={MODELS} rows={models.data.data} rowKey={(row) => row.evaluation_id} /> : <Empty title="Your team has evaluated no model on it, and nobody has published an evaluation." command={`prime eval run ${owner}/${name} -m tiny -n 64`} />)}
      </Card>
      <Card title="Adapters that your team trained with it">
        <Problem of={adapters.problem} />
        {!adapters.data && !adapters.problem && <Skeleton what="adapters" />}
        {adapters.data && (adapters.data.adapters.length ? <Table caption="Adapters" columns={ADAPTERS} rows={adapters.data.adapters} rowKey={(row) => row.id} /> : <Empty title="None yet. The tab “Use it” has the lines to train one." />)}
      </Card>
      <Problem of={related.problem} />
      {related.data && related.data.data.dependants.length > 0 && <Card title="Environments that depend on it"><Table caption="Dependants" columns={RELATED} rows={related.data.data.dependants} rowKey={(row) => row.environment} /></Card>}
      {related.data && related.data.data.forks.length > 0 && <Card title="Forks"><Table caption="Forks" columns={RELATED} rows={related.data.data.forks} rowKey={(row) => row.environment} /></Card>}
    </>
  );
}

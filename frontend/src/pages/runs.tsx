/** All runs of the team, newest first. */
import { Link } from "react-router";
import type { Run } from "../api/types";
import { useQuery } from "../api/use-query";
import { Empty, Heading, Loading, Problem, RunBadge } from "../design/components";
import { when } from "../design/format";

export function RunsPage() {
  const query = useQuery<{ runs: Run[] }>("/rft/runs?limit=100", 5000);
  return (
    <>
      <Heading title="Runs" note="Every run trains its own adapter; all of them share one copy of the base model." />
      <Problem error={query.error} />
      <section className="card">
        {!query.data && !query.error && <Loading what="runs" />}
        {query.data?.runs.length === 0 && <Empty title="No run yet." command="prime train examples/configs/digit_sum.toml --follow" />}
        {query.data && query.data.runs.length > 0 && <RunTable runs={query.data.runs} />}
      </section>
    </>
  );
}

export function RunTable({ runs }: { runs: Run[] }) {
  return (
    <div className="table-wrap">
      <table>
        <thead><tr><th>Run</th><th>State</th><th>Model</th><th>Environment</th><th>Started</th></tr></thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.id}>
              <td><Link to={`/runs/${run.id}`}>{run.name ?? run.id}</Link></td>
              <td><RunBadge status={run.status} />{run.queueReason && <div className="muted small">{run.queueReason}</div>}</td>
              <td>{run.baseModel}</td>
              <td className="muted">{run.environments.map((environment) => environment.id).join(", ")}</td>
              <td className="muted">{when(run.startedAt ?? run.createdAt)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

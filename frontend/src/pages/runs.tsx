/** All runs of the team, newest first. */
import { useQuery } from "../api/use-query";
import { Card } from "../design/card";
import { Empty } from "../design/empty";
import { Heading } from "../design/heading";
import { Problem } from "../design/notice";
import { Skeleton } from "../design/skeleton";
import { RunTable } from "./run-table";

const REFRESH_MS = 5_000;

export function RunsPage() {
  const query = useQuery("/api/v1/rft/runs", { query: { limit: 100 } }, REFRESH_MS);
  return (
    <>
      <Heading title="Runs" note="Every run trains its own adapter; all of them share one copy of the base model." />
      <Card>
        <Problem of={query.problem} />
        {!query.data && !query.problem && <Skeleton what="runs" />}
        {query.data?.runs.length === 0 && <Empty title="No run yet." command="prime train examples/configs/digit_sum.toml --follow" />}
        {query.data && query.data.runs.length > 0 && <RunTable runs={query.data.runs} />}
      </Card>
    </>
  );
}

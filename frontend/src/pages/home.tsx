/** What to do next, what runs now, what it has cost. */
import { useQuery } from "../api/use-query";
import { Heading } from "../design/heading";
import { useSession } from "../session";
import { RunTable } from "./run-table";

export function HomePage() {
  const { team } = useSession();
  const runs = useQuery("/api/v1/rft/runs", { query: { limit: 5 } }, 5_000);
  return (
    <>
      <Heading title={team.name} />
      <RunTable runs={runs.data?.runs ?? []} />
    </>
  );
}

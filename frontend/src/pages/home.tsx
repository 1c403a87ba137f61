/** What to do next, what runs now, what it has cost. */
import { Link } from "react-router";
import type { Run, SignedIn, Wallet } from "../api/types";
import { useQuery } from "../api/use-query";
import { Heading, Stat } from "../design/components";
import { dollars } from "../design/format";
import { RunTable } from "./runs";

export function HomePage({ session }: { session: SignedIn }) {
  const runs = useQuery<{ runs: Run[] }>("/rft/runs?limit=5", 5000);
  const wallet = useQuery<Wallet>("/billing/wallet");
  const running = runs.data?.runs.filter((run) => run.status === "RUNNING").length ?? 0;
  return (
    <>
      <Heading title={`Good to see you, ${session.user.name || session.user.email}`} note="Push an environment, train an adapter on it, call the result." />
      <div className="grid">
        <Stat value={wallet.data ? dollars(wallet.data.balance_usd) : "—"} label="in the wallet" />
        <Stat value={running} label="runs at work" />
        <Stat value={session.teams[0]?.slug} label="team" />
      </div>
      {runs.data?.runs.length === 0 ? <NextSteps /> : (
        <section className="card">
          <div className="head"><h2>Latest runs</h2><Link to="/runs">All runs</Link></div>
          <RunTable runs={runs.data?.runs ?? []} />
        </section>
      )}
    </>
  );
}

function NextSteps() {
  return (
    <section className="card">
      <h2>First run, four lines</h2>
      <pre>{`export PRIME_API_BASE_URL=${window.location.origin}
prime login
prime push examples/environments/digit_sum
prime train examples/configs/digit_sum.toml --follow`}</pre>
    </section>
  );
}

/** What to do next, what runs now, what it has cost. */
import { Link } from "react-router";
import { useQuery } from "../api/use-query";
import { Card, Stat, Stats } from "../design/card";
import { count, microDollars, words } from "../design/format";
import { Heading } from "../design/heading";
import { Problem } from "../design/notice";
import { Skeleton } from "../design/skeleton";
import { Spark } from "../design/spark";
import { useSession } from "../session";
import { byMeter, currentMonth } from "./billing/month";
import { NextSteps } from "./home/next-steps";
import { RunningNow } from "./home/running-now";
import { RunTable } from "./run-table";

const RUNS_SHOWN = 6;
const REFRESH_MS = 5_000;
const BILL_REFRESH_MS = 15_000;
const MONTH_DAYS = 31;
const LIVE = new Set(["QUEUED", "PENDING", "RUNNING", "PAUSING"]);

export function HomePage() {
  const { team, user } = useSession();
  const runs = useQuery("/api/v1/rft/runs", { query: { limit: RUNS_SHOWN } }, REFRESH_MS);
  const wallet = useQuery("/api/v1/billing/wallet", { query: { limit: 1 } }, BILL_REFRESH_MS);
  const daily = useQuery("/api/v1/billing/usage/daily", { query: { days: MONTH_DAYS } }, BILL_REFRESH_MS);
  const adapters = useQuery("/api/v1/rft/adapters", { query: { limit: 100 } }, BILL_REFRESH_MS);
  const rows = runs.data?.runs ?? [];
  const live = rows.filter((run) => LIVE.has(run.status));
  const month = currentMonth(daily.data?.rows ?? []);
  const deployed = adapters.data?.adapters.filter((adapter) => adapter.deploymentStatus === "DEPLOYED").length;
  return (
    <>
      <Heading title={team.is_personal ? user.name || team.name : team.name} note="Push an environment, train an adapter on it, deploy and call the result." />
      <Stats label="Now">
        <Stat label="Balance" value={wallet.data ? microDollars(wallet.data.balance_microusd) : "…"} note={wallet.data && wallet.data.held_microusd > 0 ? `${microDollars(wallet.data.held_microusd)} held for work in progress` : <Link to="/billing">Top up</Link>} />
        <Stat label="Spent this month" value={daily.data ? microDollars(month.total) : "…"} note={<Link to="/billing">The bill</Link>} />
        <Stat label="Runs at work" value={runs.data ? live.length : "…"} note={runs.data ? `${count(runs.data.total)} in all` : undefined} />
        <Stat label="Adapters deployed" value={deployed ?? "…"} note={<Link to="/models">Models</Link>} />
      </Stats>
      <Problem of={runs.problem ?? wallet.problem ?? daily.problem} />
      {live.length > 0 && <RunningNow runs={live} />}
      <NextSteps hasRun={rows.length > 0} hasAdapter={Boolean(adapters.data?.adapters.length)} hasDeployed={Boolean(deployed)} />
      {!runs.data && !runs.problem && <Skeleton what="runs" />}
      {rows.length > 0 && <Card title="Latest runs" actions={<Link to="/runs">All runs</Link>}><RunTable runs={rows} isStale={runs.isStale} /></Card>}
      {month.total > 0 && <MonthByMeter month={month} />}
    </>
  );
}

function MonthByMeter({ month }: { month: ReturnType<typeof currentMonth> }) {
  return (
    <Card title="Spent this month" actions={<Spark values={month.days} label={`Cost per day, ${month.days.length} days with a cost`} />}>
      <dl className="shares">
        {byMeter(month.rows).map(({ meter, amount }) => (
          <div key={meter}>
            <dt>{words(meter)}</dt>
            <dd>{microDollars(amount)}</dd>
            <svg className="meter-bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect width={(100 * amount) / month.total} height="6" /></svg>
          </div>
        ))}
      </dl>
    </Card>
  );
}

/** What the team has, what it spent and on what, and the ledger behind it. */
import { useSearchParams } from "react-router";
import { useQuery } from "../api/use-query";
import { Stat, Stats } from "../design/card";
import { microDollars } from "../design/format";
import { Heading } from "../design/heading";
import { Problem } from "../design/notice";
import { Tabs } from "../design/tabs";
import { BillPanel } from "./billing/bill";
import { DailyCosts } from "./billing/daily-costs";
import { LedgerPanel } from "./billing/ledger";
import { PricesPanel } from "./billing/prices";
import { TopUp } from "./billing/top-up";

const REFRESH_MS = 10_000;

export function BillingPage() {
  const [search, setSearch] = useSearchParams();
  const wallet = useQuery("/api/v1/billing/wallet", { query: { limit: 1 } }, REFRESH_MS);
  const usage = useQuery("/api/v1/billing/usage", { query: { limit: 1 } }, REFRESH_MS);
  const tabs = [
    { id: "bill", label: "Bill", panel: () => <BillPanel /> },
    { id: "days", label: "By day", panel: () => <DailyCosts /> },
    { id: "ledger", label: "Ledger", panel: () => <LedgerPanel /> },
    { id: "prices", label: "Prices", panel: () => <PricesPanel /> },
  ];
  return (
    <>
      <Heading title="Billing" note="Tokens, sandbox seconds and judge calls on one bill. Every figure comes from the ledger." >
        <TopUp onDone={wallet.reload} />
      </Heading>
      <Problem of={wallet.problem} />
      <Stats label="Money">
        <Stat label="Balance" value={wallet.data ? microDollars(wallet.data.balance_microusd) : "…"} note="what the team may still spend" />
        <Stat label="Held" value={wallet.data ? microDollars(wallet.data.held_microusd) : "…"} note="reserved for work in progress" />
        <Stat label="Spent so far" value={usage.data ? microDollars(usage.data.total_microusd) : "…"} note="the sum of all lines of the bill" />
      </Stats>
      <Tabs label="Parts of the bill" tabs={tabs} chosen={search.get("tab") ?? "bill"} onChoose={(tab) => setSearch({ tab }, { replace: true })} />
    </>
  );
}

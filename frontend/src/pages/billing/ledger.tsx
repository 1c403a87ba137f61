/** Double entry, append-only: both sides of every transfer, newest first. */
import { useState } from "react";
import type { LedgerEntry } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { Card } from "../../design/card";
import { Empty } from "../../design/empty";
import { count, microDollars, when, words } from "../../design/format";
import { Problem } from "../../design/notice";
import { CursorPager } from "../../design/pager";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Subject } from "./bill";

const PAGE = 50;
const COLUMNS: Column<LedgerEntry>[] = [
  { name: "When", cell: (row) => <span className="muted nowrap">{when(row.created_at)}</span> },
  { name: "What", cell: (row) => words(row.transfer_kind) },
  { name: "Account", cell: (row) => row.account },
  { name: "For", cell: (row) => (row.subject_kind && row.subject_id ? <><Subject kind={row.subject_kind} id={row.subject_id} />{row.meter && <span className="muted"> · {words(row.meter)}</span>}</> : <span className="muted">—</span>) },
  { name: "Transfer", cell: (row) => <code title={row.transfer_id}>{row.transfer_id.slice(-8)}</code> },
  { name: "Amount", kind: "number", cell: (row) => microDollars(row.amount_microusd) },
];

export function LedgerPanel() {
  const [trail, setTrail] = useState<string[]>([]);
  const query = useQuery("/api/v1/billing/ledger", { query: { limit: PAGE, cursor: trail.at(-1) } });
  const ledger = query.data;
  return (
    <Card title="Ledger" note={ledger ? `${count(ledger.entries_count)} entries, which sum to ${microDollars(ledger.sum_microusd)}.` : undefined}>
      <Problem of={query.problem} />
      {!ledger && !query.problem && <Skeleton what="the ledger" />}
      {ledger?.items.length === 0 && <Empty title="No money has moved yet." command="prime wallet top-up 10" />}
      {ledger && ledger.items.length > 0 && <Table caption="Ledger entries" columns={COLUMNS} rows={ledger.items} rowKey={(row) => row.id} isStale={query.isStale} />}
      <CursorPager trail={trail} next={ledger?.next_cursor} what="ledger entries" onTrail={setTrail} />
    </Card>
  );
}

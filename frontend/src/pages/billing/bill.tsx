/** The bill: one line per subject, meter and price version. */
import { useState } from "react";
import { Link } from "react-router";
import type { MeterRow } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { Card } from "../../design/card";
import { Empty } from "../../design/empty";
import { count, microDollars, words } from "../../design/format";
import { Problem } from "../../design/notice";
import { CursorPager } from "../../design/pager";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Age } from "../../design/time";

const PAGE = 50;
const REFRESH_MS = 10_000;
const PLACES: Record<string, string> = { run: "/runs", eval: "/evaluations" };

export function Subject({ kind, id }: { kind: string; id: string }) {
  const place = PLACES[kind];
  return <>{words(kind)} {place ? <Link to={`${place}/${id}`}><code>{id}</code></Link> : <code>{id}</code>}</>;
}

const COLUMNS: Column<MeterRow>[] = [
  { name: "For", sortBy: (row) => `${row.subject_kind} ${row.subject_id}`, cell: (row) => <Subject kind={row.subject_kind} id={row.subject_id} /> },
  { name: "Meter", sortBy: (row) => row.meter, cell: (row) => <span className="nowrap">{words(row.meter)}</span> },
  { name: "Model", sortBy: (row) => row.model, cell: (row) => row.model },
  { name: "Quantity", kind: "number", sortBy: (row) => row.quantity, cell: (row) => count(row.quantity) },
  { name: "US$ per million", kind: "number", sortBy: (row) => Number(row.usd_per_million), cell: (row) => <span title={`Price version ${row.price_version}`}>{Number(row.usd_per_million)}</span> },
  { name: "Amount", kind: "number", sortBy: (row) => row.amount_microusd, cell: (row) => microDollars(row.amount_microusd) },
  { name: "Last use", sortBy: (row) => row.last_billed_at, cell: (row) => <Age of={row.last_billed_at} /> },
];

export function BillPanel() {
  const [trail, setTrail] = useState<string[]>([]);
  const query = useQuery("/api/v1/billing/usage", { query: { limit: PAGE, cursor: trail.at(-1) } }, REFRESH_MS);
  const bill = query.data;
  return (
    <Card>
      <Problem of={query.problem} />
      {!bill && !query.problem && <Skeleton what="the bill" />}
      {bill?.items.length === 0 && <Empty title="Nothing was billed yet." command="prime train examples/configs/digit_sum.toml --follow" />}
      {bill && bill.items.length > 0 && (
        <Table caption="Lines of the bill" columns={COLUMNS} rows={bill.items} rowKey={(row) => [row.subject_kind, row.subject_id, row.meter, row.price_version].join(" ")} isStale={query.isStale} />
      )}
      <CursorPager trail={trail} next={bill?.next_cursor} what="lines of the bill" onTrail={setTrail} />
    </Card>
  );
}

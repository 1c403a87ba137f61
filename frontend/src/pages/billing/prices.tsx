/** The prices in force. */
import { useQuery } from "../../api/use-query";
import { Card } from "../../design/card";
import { when, words } from "../../design/format";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";

interface Price {
  model: string;
  meter: string;
  version: number;
  usd_per_million: string;
  effective_at: string;
}

const COLUMNS: Column<Price>[] = [
  { name: "Model", sortBy: (row) => row.model, cell: (row) => row.model || <span className="muted">every model</span> },
  { name: "Meter", sortBy: (row) => row.meter, cell: (row) => words(row.meter) },
  { name: "US$ per million", kind: "number", sortBy: (row) => Number(row.usd_per_million), cell: (row) => Number(row.usd_per_million) },
  { name: "Version", kind: "number", cell: (row) => row.version },
  { name: "In force since", cell: (row) => <span className="muted">{when(row.effective_at)}</span> },
];

export function PricesPanel() {
  const query = useQuery("/api/v1/billing/prices", {});
  return (
    <Card title="Prices" note="A price never changes; a new version follows it. Each line of the bill names the version that it was billed at.">
      <Problem of={query.problem} />
      {query.data ? <Table caption="Prices in force" columns={COLUMNS} rows={query.data.prices} rowKey={(row) => `${row.model} ${row.meter}`} /> : !query.problem && <Skeleton what="prices" />}
    </Card>
  );
}

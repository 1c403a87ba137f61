/** Datasets: rows that runs learn from, how many of each were kept, and where a file is uploaded. */
import { useState } from "react";
import { api } from "../api/client";
import type { DatasetRow } from "../api/shapes";
import { useAction } from "../api/use-action";
import { useQuery } from "../api/use-query";
import { Badge } from "../design/badge";
import { Card } from "../design/card";
import { Command } from "../design/command";
import { ConfirmButton } from "../design/dialog";
import { Empty } from "../design/empty";
import { bytes, count, shortDigest } from "../design/format";
import { Heading } from "../design/heading";
import { Problem } from "../design/notice";
import { Pager } from "../design/pager";
import { Skeleton } from "../design/skeleton";
import { type Column, Table } from "../design/table";
import { Age } from "../design/time";
import { useToast } from "../design/toast";
import { ReportButton } from "./datasets/report";
import { Upload } from "./datasets/upload";

const PAGE = 50;

export function DatasetsPage() {
  const [page, setPage] = useState(1);
  const { data, problem, isStale, reload } = useQuery("/api/v1/datasets", { query: { limit: PAGE, offset: (page - 1) * PAGE } });
  const rows = data?.datasets ?? [];
  return (
    <>
      <Heading title="Datasets" note="Conversations or texts that somebody has written down. A run learns from them as they are, alone or beside environments." />
      <Card title="Your team's datasets">
        <Problem of={problem} />
        {!data && !problem && <Skeleton what="datasets" />}
        {data?.total === 0 && <Empty title="Your team has no dataset." command="prime datasets push examples/datasets/sums.jsonl" />}
        {rows.length > 0 && <Datasets rows={rows} isStale={isStale} onChange={reload} />}
        {data && data.total > 0 && <Pager page={page} pages={Math.ceil(data.total / PAGE)} total={data.total} what="datasets" onPage={setPage} />}
        {rows[0] && <Command label="In a run's file" text={`[[dataset]]\nid = "${rows[0].name}"`} />}
      </Card>
      <Upload onDone={reload} />
    </>
  );
}

function Datasets({ rows, isStale, onChange }: { rows: DatasetRow[]; isStale: boolean; onChange: () => void }) {
  const columns: Column<DatasetRow>[] = [
    { name: "Dataset", sortBy: (row) => row.name, cell: (row) => <><span className="mono">{row.name}</span><div className="muted small"><code title={row.sha256}>{shortDigest(row.sha256)}</code></div></> },
    { name: "Kind", sortBy: (row) => row.kind, cell: (row) => <Badge isPlain>{row.kind}</Badge> },
    { name: "Rows", kind: "number", sortBy: (row) => row.rows, cell: (row) => count(row.rows) },
    { name: "Kept", kind: "number", sortBy: (row) => row.kept, cell: (row) => count(row.kept) },
    { name: "Left out", kind: "number", sortBy: (row) => row.dropped, cell: (row) => count(row.dropped) },
    { name: "Size", kind: "number", sortBy: (row) => row.size_bytes, cell: (row) => bytes(row.size_bytes) },
    { name: "Uploaded", sortBy: (row) => row.created_at, cell: (row) => <Age of={row.created_at} /> },
    { name: "Actions", kind: "actions", cell: (row) => <span className="row"><ReportButton id={row.id} name={row.name} /><Delete dataset={row} onDone={onChange} /></span> },
  ];
  return <Table caption="Datasets" columns={columns} rows={rows} rowKey={(row) => row.id} isStale={isStale} />;
}

function Delete({ dataset, onDone }: { dataset: DatasetRow; onDone: () => void }) {
  const say = useToast();
  const remove = useAction(
    () => api.delete("/api/v1/datasets/{dataset_id}", { path: { dataset_id: dataset.id } }),
    () => {
      say(`The dataset “${dataset.name}” is deleted.`);
      onDone();
    },
  );
  return (
    <ConfirmButton label="Delete" title={`Delete “${dataset.name}”?`} action={remove} isDanger isSlim>
      <p>Its file goes and its name is free again; what runs have learnt from it stays. Refused while a run that has not ended learns from it.</p>
    </ConfirmButton>
  );
}

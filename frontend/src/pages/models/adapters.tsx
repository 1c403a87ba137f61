/** The team's adapter versions by run: what they are, whether they are served, and the switch for it. */
import { useState } from "react";
import { Link } from "react-router";
import type { Adapter } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { Badge, DeploymentBadge } from "../../design/badge";
import { Card } from "../../design/card";
import { Empty } from "../../design/empty";
import { Field, Segmented } from "../../design/form";
import { bytes, shortDigest } from "../../design/format";
import { Problem } from "../../design/notice";
import { Pager } from "../../design/pager";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Age } from "../../design/time";
import { DeploySwitch, isServed } from "./deploy-switch";

const PAGE = 100;
const REFRESH_MS = 4_000;
const SHOWN = [["all", "All"], ["served", "Deployed"]] as const;

function columnsFor(reload: () => void): Column<Adapter>[] {
  return [
    {
      name: "Adapter",
      sortBy: (row) => row.displayName,
      cell: (row) => (
        <>
          <b>{row.displayName}</b> <Badge isPlain>step {row.step}</Badge>
          <div className="small"><Link to={`/runs/${row.rftRunId}`}>Run</Link> <code className="muted">{row.id}</code></div>
        </>
      ),
    },
    { name: "Base model", sortBy: (row) => row.baseModel, cell: (row) => row.baseModel },
    { name: "Digest", cell: (row) => <code title={row.digest}>{shortDigest(row.digest)}</code> },
    { name: "Rank", kind: "number", sortBy: (row) => row.loraRank, cell: (row) => row.loraRank },
    { name: "Size", kind: "number", sortBy: (row) => row.sizeBytes, cell: (row) => <span className="nowrap">{bytes(row.sizeBytes)}</span> },
    { name: "Served", sortBy: (row) => row.deploymentStatus, cell: (row) => <><DeploymentBadge status={row.deploymentStatus} />{row.deploymentError && <div className="small complaint">{row.deploymentError}</div>}</> },
    { name: "Made", sortBy: (row) => row.createdAt, cell: (row) => <Age of={row.createdAt} /> },
    { name: "Actions", kind: "actions", cell: (row) => <DeploySwitch adapter={row} onDone={reload} /> },
  ];
}

export function AdaptersPanel() {
  const [page, setPage] = useState(1);
  const [search, setSearch] = useState("");
  const [shown, setShown] = useState<"all" | "served">("all");
  const query = useQuery("/api/v1/rft/adapters", { query: { limit: PAGE, offset: (page - 1) * PAGE } }, REFRESH_MS);
  const all = query.data?.adapters ?? [];
  const text = search.trim().toLowerCase();
  const rows = all.filter((row) => (shown === "all" || isServed(row)) && `${row.displayName} ${row.id} ${row.rftRunId} ${row.baseModel}`.toLowerCase().includes(text));
  return (
    <Card>
      {all.length > 0 && (
        <div className="table-tools">
          <Field label="Find" type="search" className="wide" value={search} onChange={(event) => setSearch(event.currentTarget.value)} />
          <Segmented label="Which adapters" options={SHOWN} chosen={shown} onChoose={setShown} />
        </div>
      )}
      <Problem of={query.problem} />
      {!query.data && !query.problem && <Skeleton what="adapters" />}
      {query.data && all.length === 0 && <Empty title="No adapter yet. A run keeps one at every interval and at its end." command="prime train examples/configs/digit_sum.toml --follow" />}
      {all.length > 0 && rows.length === 0 && <Empty title="No adapter is like that." />}
      {rows.length > 0 && <Table caption="Adapters" columns={columnsFor(query.reload)} rows={rows} rowKey={(row) => row.id} isStale={query.isStale} />}
      {all.length > 0 && <Pager page={page} pages={Math.ceil((query.data?.total ?? 0) / PAGE)} total={query.data?.total ?? 0} what="adapters" onPage={setPage} />}
    </Card>
  );
}

/** The hub: environments of the team and public ones, with the outcome of their release checks. */
import { useDeferredValue, useState } from "react";
import { Link } from "react-router";
import type { EnvironmentRow } from "../api/shapes";
import { useQuery } from "../api/use-query";
import { Badge, ReleaseBadge } from "../design/badge";
import { Card } from "../design/card";
import { Empty } from "../design/empty";
import { Field, Segmented } from "../design/form";
import { Heading } from "../design/heading";
import { Problem } from "../design/notice";
import { Pager } from "../design/pager";
import { Skeleton } from "../design/skeleton";
import { type Column, Table } from "../design/table";
import { Age } from "../design/time";

const PAGE = 50;
const OWNERS = [["mine", "My team's"], ["all", "All"]] as const;
const REFRESH_MS = 10_000;

const COLUMNS: Column<EnvironmentRow>[] = [
  {
    name: "Environment",
    sortBy: (row) => `${row.owner.name}/${row.name}`,
    cell: (row) => (
      <>
        <Link to={`/environments/${row.owner.name}/${row.name}`}>{row.owner.name}/{row.name}</Link>
        {row.description && <div className="muted small">{row.description}</div>}
      </>
    ),
  },
  { name: "Version", cell: (row) => <span className="mono">{row.latest_version ?? "—"}</span> },
  { name: "Check", sortBy: (row) => row.badge, cell: (row) => <ReleaseBadge state={row.badge} /> },
  { name: "Seen by", sortBy: (row) => row.visibility, cell: (row) => <Badge isPlain>{row.visibility === "PRIVATE" ? "team" : "everybody"}</Badge> },
  { name: "Tags", cell: (row) => <span className="row">{row.tags.map((tag) => <Badge key={tag} isPlain>{tag}</Badge>)}</span> },
  { name: "Pushed", sortBy: (row) => row.updated_at, cell: (row) => <Age of={row.updated_at} /> },
];

export function EnvironmentsPage() {
  const [search, setSearch] = useState("");
  const [owners, setOwners] = useState<"mine" | "all">("mine");
  const [page, setPage] = useState(1);
  const asked = useDeferredValue(search.trim());
  const query = useQuery("/api/v1/environmentshub", { query: { search: asked || undefined, mine_only: owners === "mine", limit: PAGE, offset: (page - 1) * PAGE } }, REFRESH_MS);
  const rows = query.data?.data ?? [];
  const total = query.data?.total_count ?? 0;
  return (
    <>
      <Heading title="Environments" note="What a model should do and how it is scored. Each version is checked in a sandbox when it is pushed." />
      <Card>
        <div className="table-tools">
          <Field label="Search" type="search" className="wide" value={search} onChange={(event) => { setSearch(event.currentTarget.value); setPage(1); }} />
          <Segmented label="Whose environments" options={OWNERS} chosen={owners} onChoose={(value) => { setOwners(value); setPage(1); }} />
        </div>
        <Problem of={query.problem} />
        {!query.data && !query.problem && <Skeleton what="environments" />}
        {query.data && rows.length === 0 && <NoRows search={asked} isMine={owners === "mine"} />}
        {rows.length > 0 && <Table caption="Environments" columns={COLUMNS} rows={rows} rowKey={(row) => row.id} isStale={query.isStale} />}
        {rows.length > 0 && <Pager page={page} pages={Math.ceil(total / PAGE)} total={total} what="environments" onPage={setPage} />}
      </Card>
    </>
  );
}

function NoRows({ search, isMine }: { search: string; isMine: boolean }) {
  if (search) return <Empty title={`No environment has “${search}” in its name, description or tags.`} />;
  return <Empty title={isMine ? "Your team has not pushed an environment." : "There is no environment yet."} command="prime push examples/environments/digit_sum" />;
}

/** The hub: environments of the team and public ones, with the outcome of their release checks. */
import { useDeferredValue, useState } from "react";
import { Link, useSearchParams } from "react-router";
import type { EnvironmentRow } from "../api/shapes";
import { useQuery } from "../api/use-query";
import { Badge, ReleaseBadge } from "../design/badge";
import { Card } from "../design/card";
import { Empty } from "../design/empty";
import { Field, Segmented, Select } from "../design/form";
import { Heading } from "../design/heading";
import { Problem } from "../design/notice";
import { Pager } from "../design/pager";
import { Skeleton } from "../design/skeleton";
import { type Column, Table } from "../design/table";
import { Age } from "../design/time";

const PAGE = 50;
const OWNERS = [["mine", "My teams'"], ["starred", "Starred"], ["all", "All"]] as const;
const CHECKS = [["", "Any"], ["GREEN", "passed"], ["RED", "failed"], ["BUILDING", "under way"], ["PENDING", "waiting"]] as const;
const ORDERS = [["", "Best or newest"], ["stars", "Most stars"], ["name", "Name"], ["created_at", "First pushed"]] as const;
type Check = Exclude<(typeof CHECKS)[number][0], "">;
type Order = Exclude<(typeof ORDERS)[number][0], "">;
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
  { name: "Tags", cell: (row) => <span className="row">{row.tags.map((tag) => <Link key={tag} to={`/environments?tag=${encodeURIComponent(tag)}`}><Badge isPlain>{tag}</Badge></Link>)}</span> },
  { name: "Stars", kind: "number", sortBy: (row) => row.stars, cell: (row) => <>{row.starred && <span title="You gave it a star">★ </span>}{row.stars}</> },
  { name: "Pushed", sortBy: (row) => row.updated_at, cell: (row) => <Age of={row.updated_at} /> },
];

export function EnvironmentsPage() {
  const [search, setSearch] = useState("");
  const [parameters, setParameters] = useSearchParams();
  const tag = parameters.get("tag") ?? "";
  const [owners, setOwners] = useState<(typeof OWNERS)[number][0]>(tag ? "all" : "mine");
  const [check, setCheck] = useState<Check | "">("");
  const [order, setOrder] = useState<Order | "">("");
  const [page, setPage] = useState(1);
  const asked = useDeferredValue(search.trim());
  const query = useQuery("/api/v1/environmentshub", {
    query: {
      search: asked || undefined,
      mine_only: owners === "mine",
      starred_only: owners === "starred",
      tags: tag ? [tag] : undefined,
      badge: check || undefined,
      sort_by: order || undefined,
      sort_order: order === "name" || order === "created_at" ? "asc" : "desc",
      limit: PAGE,
      offset: (page - 1) * PAGE,
    },
  }, REFRESH_MS);
  const rows = query.data?.data ?? [];
  const total = query.data?.total_count ?? 0;
  return (
    <>
      <Heading title="Environments" note="What a model should do and how it is scored. Each version is checked in a sandbox when it is pushed." />
      <Card>
        <div className="table-tools">
          <Field label="Search" type="search" className="wide" value={search} onChange={(event) => { setSearch(event.currentTarget.value); setPage(1); }} />
          <Segmented label="Whose environments" options={OWNERS} chosen={owners} onChoose={(value) => { setOwners(value); setPage(1); }} />
          <Select label="Check" options={CHECKS} value={check} onChange={(event) => { setCheck(event.currentTarget.value as Check | ""); setPage(1); }} />
          <Select label="Order" options={ORDERS} value={order} onChange={(event) => { setOrder(event.currentTarget.value as Order | ""); setPage(1); }} />
        </div>
        {tag && <p>With the tag <Badge isPlain>{tag}</Badge> <button type="button" className="button slim" onClick={() => setParameters({})}>Show all tags</button></p>}
        <Problem of={query.problem} />
        {!query.data && !query.problem && <Skeleton what="environments" />}
        {query.data && rows.length === 0 && <NoRows search={asked || tag} whose={owners} />}
        {rows.length > 0 && <Table caption="Environments" columns={COLUMNS} rows={rows} rowKey={(row) => row.id} isStale={query.isStale} />}
        {rows.length > 0 && <Pager page={page} pages={Math.ceil(total / PAGE)} total={total} what="environments" onPage={setPage} />}
      </Card>
    </>
  );
}

function NoRows({ search, whose }: { search: string; whose: (typeof OWNERS)[number][0] }) {
  if (search) return <Empty title={`No environment has “${search}” in its name, tags, description or README.`} />;
  if (whose === "starred") return <Empty title="You have not given a star. Open an environment and press Star." />;
  return <Empty title={whose === "mine" ? "Your teams have not pushed an environment." : "There is no environment yet."} command="prime push examples/environments/digit_sum" />;
}

/** What the team's members did, newest first. */
import { useState } from "react";
import { useQuery } from "../../api/use-query";
import { Card } from "../../design/card";
import { Empty } from "../../design/empty";
import { when } from "../../design/format";
import { Problem } from "../../design/notice";
import { CursorPager } from "../../design/pager";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";

interface Deed {
  id: string;
  created_at: string;
  action: string;
  object_kind: string;
  object_id: string;
  user_email: string | null;
  key_prefix: string;
  request_id: string;
}

const COLUMNS: Column<Deed>[] = [
  { name: "When", cell: (row) => <span className="muted nowrap">{when(row.created_at)}</span> },
  { name: "Who", cell: (row) => row.user_email ?? "the system" },
  { name: "Did", cell: (row) => row.action },
  { name: "To", cell: (row) => <>{row.object_kind} <code>{row.object_id}</code></> },
  { name: "With", cell: (row) => (row.key_prefix ? <code>{row.key_prefix}</code> : <span className="muted">the dashboard</span>) },
];

export function ActivityPanel() {
  const [trail, setTrail] = useState<string[]>([]);
  const query = useQuery("/api/v1/audit-events", { query: { limit: 50, cursor: trail.at(-1) } });
  return (
    <Card>
      <Problem of={query.problem} />
      {!query.data && !query.problem && <Skeleton what="activity" />}
      {query.data?.items.length === 0 && <Empty title="Nothing was done yet." />}
      {query.data && query.data.items.length > 0 && <Table caption="Activity" columns={COLUMNS} rows={query.data.items} rowKey={(row) => row.id} isStale={query.isStale} />}
      <CursorPager trail={trail} next={query.data?.next_cursor} what="activity" onTrail={setTrail} />
    </Card>
  );
}

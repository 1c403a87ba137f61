/** Every pushed version; none ever changes. */
import type { VersionRow } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { Badge, ReleaseBadge } from "../../design/badge";
import { Card } from "../../design/card";
import { bytes, shortDigest } from "../../design/format";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Age } from "../../design/time";

export function VersionsPanel({ owner, name, shown, onShow }: { owner: string; name: string; shown: string; onShow: (version: string) => void }) {
  const query = useQuery("/api/v1/environmentshub/{owner}/{name}/versions", { path: { owner, name } });
  const columns: Column<VersionRow>[] = [
    { name: "Version", cell: (row) => <span className="row"><span className="mono">{row.version}</span>{row.yanked && <Badge tone="bad">yanked</Badge>}{row.quarantined && <Badge tone="bad">in quarantine</Badge>}</span> },
    { name: "Check", cell: (row) => <ReleaseBadge state={row.badge} /> },
    { name: "Content", cell: (row) => <code title={row.sha256}>{shortDigest(row.sha256)}</code> },
    { name: "Wheel", kind: "number", cell: (row) => bytes(row.wheel_size_bytes) },
    { name: "Pushed", cell: (row) => <Age of={row.created_at} /> },
    { name: "Show", kind: "actions", cell: (row) => (row.version === shown ? <span className="muted small">shown</span> : <button type="button" className="button slim" onClick={() => onShow(row.version)}>Show</button>) },
  ];
  return (
    <Card>
      <Problem of={query.problem} />
      {query.data ? <Table caption="Versions" columns={columns} rows={query.data.data.versions} rowKey={(row) => row.release_id} /> : !query.problem && <Skeleton what="versions" />}
    </Card>
  );
}

/** What a run has left behind: adapter versions to serve, checkpoints to go on from. */
import { useEffect, useRef, useState } from "react";
import { Link } from "react-router";
import { api } from "../../api/client";
import type { components } from "../../api/schema";
import type { Adapter, Run } from "../../api/shapes";
import { useAction } from "../../api/use-action";
import { useQuery } from "../../api/use-query";
import { DeploymentBadge } from "../../design/badge";
import { Card } from "../../design/card";
import { Command, CopyButton } from "../../design/command";
import { Empty } from "../../design/empty";
import { bytes, shortDigest } from "../../design/format";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Age } from "../../design/time";
import { HAS_ENDED } from "./use-run";

type Checkpoint = components["schemas"]["CheckpointAnswer"];
const SETTLING_MS = 3_000;

function Digest({ of: digest }: { of: string }) {
  return <span className="row nowrap"><code title={digest}>{shortDigest(digest)}</code><CopyButton text={digest} label="Copy the digest" /></span>;
}

export function VersionsPanel({ run, pulse }: { run: Run; pulse: number }) {
  const [isMoving, setMoving] = useState(true);
  const adapters = useQuery("/api/v1/rft/adapters", { query: { run_id: run.id, limit: 200 } }, isMoving ? SETTLING_MS : 0);
  const isSettled = HAS_ENDED.has(run.status) && adapters.data?.adapters.every((row) => !row.deploymentStatus.endsWith("ING"));
  useEffect(() => setMoving(!isSettled), [isSettled]);
  const checkpoints = useQuery("/api/v1/rft/runs/{run_id}/checkpoints", { path: { run_id: run.id } });
  const seen = useRef(pulse);
  useEffect(() => {
    if (pulse !== seen.current) checkpoints.reload();
    seen.current = pulse;
  }, [pulse, checkpoints.reload]);
  return (
    <>
      <Card title="Adapter versions" note="Each is immutable and known by the digest of its weights. Version N is the adapter after N steps.">
        <Problem of={adapters.problem} />
        {!adapters.data && !adapters.problem && <Skeleton what="adapter versions" />}
        {adapters.data?.total === 0 && <Empty title="No version is kept yet."><p>The last one always is; <code>[adapters] interval</code> in the configuration keeps more.</p></Empty>}
        {adapters.data && adapters.data.total > 0 && <Versions adapters={adapters.data.adapters} onChange={adapters.reload} />}
      </Card>
      {run.forkedFrom && <p className="small">Forked from <Link to={`/runs/${run.forkedFrom.runId}`}>run {run.forkedFrom.runId}</Link> at step {run.forkedFrom.step}: what is before that step is there.</p>}
      <Card title="Checkpoints" note="A run goes on from these, and another run can begin at one.">
        <Problem of={checkpoints.problem} />
        {!checkpoints.data && !checkpoints.problem && <Skeleton what="checkpoints" />}
        {checkpoints.data?.checkpoints.length === 0 && <Empty title="No checkpoint is committed yet." />}
        {checkpoints.data && checkpoints.data.checkpoints.length > 0 && <Checkpoints rows={checkpoints.data.checkpoints} />}
      </Card>
    </>
  );
}

function Versions({ adapters, onChange }: { adapters: Adapter[]; onChange: () => void }) {
  const columns: Column<Adapter>[] = [
    { name: "Version", kind: "number", sortBy: (row) => row.version, cell: (row) => row.version },
    { name: "Served as", cell: (row) => <span className="row nowrap"><code>{row.servedName}</code><CopyButton text={row.servedName} label="Copy the served name" /></span> },
    { name: "Digest", cell: (row) => <Digest of={row.digest} /> },
    { name: "Size", kind: "number", sortBy: (row) => row.sizeBytes, cell: (row) => <span className="nowrap">{bytes(row.sizeBytes)}</span> },
    { name: "Deployment", cell: (row) => <><DeploymentBadge status={row.deploymentStatus} />{row.deploymentError && <div className="small problem-line">{row.deploymentError}</div>}</> },
    { name: "Act", kind: "actions", cell: (row) => <><Deploy adapter={row} onDone={onChange} /><Download adapter={row} /></> },
  ];
  const newest = adapters[0];
  return (
    <>
      <Table caption="Adapter versions" columns={columns} rows={adapters} rowKey={(row) => row.id} />
      {newest && <Command label="The newest one from a terminal" text={`prime deployments create ${newest.id}`} />}
      {newest && <Command label="Its files, for use elsewhere" text={`prime adapters download ${newest.id} --to DIR`} />}
    </>
  );
}

function Deploy({ adapter, onDone }: { adapter: Adapter; onDone: () => void }) {
  const deploy = useAction(() => api.post("/api/v1/rft/adapters/{adapter_id}/deploy", { path: { adapter_id: adapter.id } }), onDone);
  if (adapter.deploymentStatus === "DEPLOYED") return <Link className="button slim" to={`/chat?model=${encodeURIComponent(adapter.servedName)}`}>Talk to it</Link>;
  if (adapter.deploymentStatus === "DEPLOYING") return null;
  return (
    <>
      <button type="button" className="button slim" disabled={deploy.isBusy} onClick={() => void deploy.run()}>Deploy version {adapter.version}</button>
      <Problem of={deploy.problem} />
    </>
  );
}

/** The files for use elsewhere: asked for by the button, written by the trainer's host, then one link each. */
function Download({ adapter }: { adapter: Adapter }) {
  const [exportId, setExportId] = useState<string>();
  const [isWaiting, setWaiting] = useState(true);
  const ask = useAction(() => api.post("/api/v1/rft/adapters/{adapter_id}/exports", { path: { adapter_id: adapter.id }, body: { form: "adapter" } }), (made) => setExportId(made.export.id));
  const found = useQuery("/api/v1/rft/exports/{export_id}", exportId ? { path: { export_id: exportId } } : null, isWaiting ? SETTLING_MS : 0);
  const state = found.data?.export.state;
  useEffect(() => setWaiting(state === undefined || state === "QUEUED" || state === "BUILDING"), [state]);
  if (state === "READY") return <>{found.data?.export.files.map((file) => <a key={file.name} className="button slim" href={`/api/v1${file.path}`} download={file.name}>{file.name}</a>)}</>;
  return (
    <>
      <button type="button" className="button slim" disabled={ask.isBusy || (exportId !== undefined && state !== "FAILED")} onClick={() => void ask.run()}>{exportId && state !== "FAILED" ? "Files are being written" : `Download version ${adapter.version}`}</button>
      <Problem of={ask.problem ?? found.problem} />
      {state === "FAILED" && <div className="small problem-line">{found.data?.export.error}</div>}
    </>
  );
}

const CHECKPOINTS: Column<Checkpoint>[] = [
  { name: "Step", kind: "number", sortBy: (row) => row.step, cell: (row) => row.step },
  { name: "Id", cell: (row) => <span className="row nowrap"><code>{row.id}</code><CopyButton text={row.id} label="Copy the checkpoint's id" /></span> },
  { name: "Digest", cell: (row) => <Digest of={row.digest} /> },
  { name: "Size", kind: "number", sortBy: (row) => row.sizeBytes, cell: (row) => <span className="nowrap">{bytes(row.sizeBytes)}</span> },
  { name: "Age", sortBy: (row) => row.createdAt, cell: (row) => <Age of={row.createdAt} /> },
];

function Checkpoints({ rows }: { rows: Checkpoint[] }) {
  const newest = rows.at(-1);
  return (
    <>
      <Table caption="Checkpoints" columns={CHECKPOINTS} rows={rows} rowKey={(row) => row.id} />
      {newest && <Command label="In a new run's configuration, to begin at the newest one" text={`checkpoint_id = "${newest.id}"`} />}
      {newest && <Command label="Another run that goes on from there, optimizer included" text={`prime train fork ${newest.id}`} />}
    </>
  );
}

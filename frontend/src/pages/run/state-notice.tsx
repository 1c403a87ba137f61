/** The state of a run in words, and what to do now. */
import { Link } from "react-router";
import type { Run } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { Command } from "../../design/command";
import { Notice } from "../../design/notice";
import { HAS_ENDED, isElsewhere } from "./use-run";

export function StateNotice({ run }: { run: Run }) {
  return (
    <>
      <ByState run={run} />
      {run.notice && <Notice title="Note on the configuration"><p>{run.notice}</p></Notice>}
    </>
  );
}

function ByState({ run }: { run: Run }) {
  if (run.stopRequested) return <Notice title="Stopping."><p>It finishes the step it is at. Nothing to do.</p></Notice>;
  if (isElsewhere(run)) return <Elsewhere run={run} />;
  switch (run.status) {
    case "QUEUED":
      return <Waiting run={run} />;
    case "PENDING":
      return <Notice title="Starting."><p>{run.phase ?? "Its process is being started."} The first step follows by itself.</p></Notice>;
    case "PAUSING":
      return <Notice title="Pausing."><p>{run.errorMessage ?? "It writes a checkpoint and gives its place back."}</p></Notice>;
    case "PAUSED":
      return <Paused run={run} />;
    case "FAILED":
      return <Failed run={run} />;
    case "STOPPED":
      return <Notice title="Stopped."><p>{run.errorMessage}</p><Command label="Go on from the newest checkpoint" text={`prime train restart ${run.id}`} /></Notice>;
    case "COMPLETED":
      return <Completed run={run} />;
    default:
      return run.phase ? <p className="muted" role="status">Now: {run.phase}{run.inflightRollouts ? ` · ${run.inflightRollouts} rollouts in flight` : ""}</p> : null;
  }
}

function Elsewhere({ run }: { run: Run }) {
  const isBad = run.status === "FAILED";
  if (!HAS_ENDED.has(run.status)) return <p className="muted" role="status">Its trainer reports from elsewhere; nothing here is billed.</p>;
  return <Notice tone={isBad ? "bad" : undefined} title={isBad ? "Failed." : "Ended."}><p>{run.errorMessage ?? "Its trainer has ended."} It takes no more reports.</p></Notice>;
}

function Waiting({ run }: { run: Run }) {
  const ahead = run.runsAhead ?? 0;
  const order = ahead === 0 ? "It is next." : `${ahead} ${ahead === 1 ? "run is" : "runs are"} ahead of it.`;
  return <Notice title="Waiting for a place."><p>{run.queueReason ? `${run.queueReason}. ` : ""}{order} It starts by itself.</p></Notice>;
}

function Paused({ run }: { run: Run }) {
  const isBroke = run.failureAnalysis?.code === "out_of_funds";
  return (
    <Notice title="Paused.">
      <Cause run={run} />
      {isBroke && <p><Link to="/billing">Top up the wallet</Link>, then resume.</p>}
      <Command label="Go on behind the newest step" text={`prime train resume ${run.id}`} />
    </Notice>
  );
}

function Failed({ run }: { run: Run }) {
  return (
    <Notice tone="bad" title="Failed.">
      <Cause run={run} />
      <Command label="Once the cause is gone, go on from the newest checkpoint" text={`prime train restart ${run.id}`} />
    </Notice>
  );
}

/** Cause, place in the environment's own code, and the end of what it printed. */
function Cause({ run }: { run: Run }) {
  const analysis = run.failureAnalysis;
  const { module, line, log } = (analysis?.detail ?? {}) as { module?: string | null; line?: number | null; log?: string };
  return (
    <>
      <p>{analysis?.rootCause ?? run.errorMessage ?? "Its owner asked for it."}</p>
      {module && <p>In your environment: <code>{module}{line ? `:${line}` : ""}</code></p>}
      {log && <details><summary>The end of its output</summary><pre tabIndex={0}>{log}</pre></details>}
    </>
  );
}

function Completed({ run }: { run: Run }) {
  const adapters = useQuery("/api/v1/rft/adapters", { query: { run_id: run.id, limit: 1 } });
  const newest = adapters.data?.adapters[0];
  const environment = String(run.environments[0]?.id ?? "OWNER/NAME");
  if (!newest) return <Notice tone="good" title={`Completed: ${run.step} steps.`} />;
  return (
    <Notice tone="good" title={`Completed: ${run.step} steps. Its adapter is ${newest.servedName}.`}>
      <Command label="Serve it" text={`prime deployments create ${newest.id}`} />
      <Command label="Evaluate it" text={`prime eval run ${environment} -m ${newest.servedName} -n 64`} />
      <p className="small">Once it is deployed, <Link to={`/chat?model=${encodeURIComponent(newest.servedName)}`}>talk to it</Link>.</p>
    </Notice>
  );
}

/** One rollout whole: how it ended, its rewards, its conversation, where its time went, its tokens. */
import { useState } from "react";
import type { components } from "../../api/schema";
import type { RolloutDetail, Trace } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { Badge } from "../../design/badge";
import { Card, Definitions, Stat, Stats } from "../../design/card";
import { count, ratio, shortDigest } from "../../design/format";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Conversation } from "./conversation";
import { rolloutTone } from "./rollout-table";
import { taskName } from "./task-name";
import { TimeBar } from "./time-bar";
import { TokenView } from "./token-view";

type Call = components["schemas"]["CallAnswer"];

export function RolloutView({ runId, rolloutId, onBack }: { runId: string; rolloutId: string; onBack: () => void }) {
  const { data, problem } = useQuery("/api/v1/rft/runs/{run_id}/rollouts/{rollout_id}", { path: { run_id: runId, rollout_id: rolloutId } });
  return (
    <>
      <div className="row"><button type="button" className="button slim" onClick={onBack}>← Back to the group</button></div>
      <Problem of={problem} />
      {!data && !problem && <Skeleton what="the rollout" lines={8} />}
      {data && <Shown runId={runId} detail={data} />}
    </>
  );
}

function Shown({ runId, detail }: { runId: string; detail: RolloutDetail }) {
  const [seat, setSeat] = useState(0);
  const { rollout } = detail;
  const trace = detail.traces[seat] ?? detail.traces[0];
  return (
    <>
      <Card title={`${taskName(detail)} at step ${detail.step}`} note={detail.environment} actions={<Badge tone={rolloutTone(rollout.state)}>{rollout.state}</Badge>}>
        <Stats label="Figures of the rollout">
          <Stat label="Reward" value={ratio(rollout.reward, 3)} note={rollout.trained ? `advantage ${ratio(rollout.advantage, 3)}` : "not trained on"} />
          <Stat label="Policy version" value={rollout.policy_version} note={`staleness ${rollout.staleness}`} />
          <Stat label="Tokens" value={count(rollout.output_tokens)} note={`${count(rollout.input_tokens)} read${detail.billed ? "" : ", not billed"}`} />
          <Stat label="Time" value={`${ratio(rollout.duration_s)} s`} note={`${rollout.turns} ${rollout.turns === 1 ? "turn" : "turns"}`} />
        </Stats>
        {rollout.error && <p className="problem-line">{rollout.error}</p>}
        <TimeBar time={detail.time_s} />
        <Scores of={detail.traces.length < 2 ? detail : { rewards: comparedRewards(detail), metrics: {} }} />
      </Card>
      {detail.traces.length > 1 && <Seats traces={detail.traces} chosen={seat} onChoose={setSeat} />}
      {trace && <Errors trace={trace} />}
      {trace && detail.traces.length > 1 && <Card title={`What ${trace.agent} earned`} note={trace.reward === null ? "No reward." : `${ratio(trace.reward, 3)} in all.`}><Scores of={trace} /></Card>}
      {trace && <Card title="Conversation" note={trace.branches.length > 1 ? `The last of ${trace.branches.length} streams; the words of all of them stand under Tokens.` : undefined}><Conversation messages={trace.messages} /></Card>}
      {trace && trace.calls.length > 0 && <Card title="Model calls" note="Which version answered, and how long it took."><Calls calls={trace.calls} /></Card>}
      {trace && <TokenView key={seat} runId={runId} rolloutId={rollout.id} seat={seat} trace={trace} />}
    </>
  );
}

/** What the rollout as a whole earned by comparison; the rest is each seat's own. */
const comparedRewards = (detail: RolloutDetail) => Object.fromEntries(Object.entries(detail.rewards).filter(([name]) => name.startsWith("group/")));

function Scores({ of }: { of: Pick<Trace, "rewards" | "metrics"> }) {
  const rows = [...Object.entries(of.rewards).map(([name, value]) => ({ name, value, kind: "reward" })), ...Object.entries(of.metrics).map(([name, value]) => ({ name, value, kind: "metric" }))];
  if (rows.length === 0) return null;
  return <Definitions of={rows.map(({ name, value, kind }) => [`${name} (${kind})`, value === null ? "no number" : ratio(value, 3)])} />;
}

function Seats({ traces, chosen, onChoose }: { traces: Trace[]; chosen: number; onChoose: (seat: number) => void }) {
  return (
    <div className="segmented" role="group" aria-label="Seat">
      {traces.map((trace, index) => (
        <button key={index} type="button" aria-pressed={index === chosen} onClick={() => onChoose(index)}>
          {trace.agent}{trace.trainable ? "" : " (not trained)"}
        </button>
      ))}
    </div>
  );
}

function Errors({ trace }: { trace: Trace }) {
  if (trace.errors.length === 0) return null;
  return (
    <Card title="Errors">
      <ul className="errors">
        {trace.errors.map((error, index) => (
          <li key={index}><b>{error.type}</b>: {error.message}{error.module && <> at <code>{error.module}{error.line === null ? "" : `:${error.line}`}</code>{error.function && ` in ${error.function}`}</>}</li>
        ))}
      </ul>
    </Card>
  );
}

const CALLS: Column<Call & { number: number }>[] = [
  { name: "Call", kind: "number", cell: (call) => call.number + 1 },
  { name: "Stream", kind: "number", cell: (call) => (call.branch === null ? "—" : call.branch + 1) },
  { name: "Version", kind: "number", cell: (call) => call.policy_version ?? "base" },
  { name: "Digest", cell: (call) => <code title={call.adapter_digest}>{shortDigest(call.adapter_digest)}</code> },
  { name: "Read", kind: "number", cell: (call) => count(call.input_tokens) },
  { name: "Wrote", kind: "number", cell: (call) => count(call.output_tokens) },
  { name: "Ended by", cell: (call) => call.finish_reason },
  { name: "After", kind: "number", cell: (call) => <span className="nowrap">{ratio(call.offset_s)} s</span> },
  { name: "Took", kind: "number", cell: (call) => <span className="nowrap">{ratio(call.duration_s)} s</span> },
];

function Calls({ calls }: { calls: Call[] }) {
  return <Table caption="Model calls" columns={CALLS} rows={calls.map((call, number) => ({ ...call, number }))} rowKey={(call) => String(call.number)} />;
}

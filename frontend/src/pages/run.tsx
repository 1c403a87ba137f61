/** One run as it happens: state and what to do now, curves, rollouts, log, config, cost. */
import { useMemo, useState } from "react";
import { useParams } from "react-router";
import { put } from "../api/client";
import type { Run, RunEvent, RunUsage } from "../api/types";
import { useQuery } from "../api/use-query";
import { useRunEvents } from "../api/use-run-events";
import { Chart } from "../design/chart";
import { Heading, Loading, Problem, RunBadge, Stat } from "../design/components";
import { count, dollars, ratio } from "../design/format";
import { RolloutsPanel } from "./rollouts";

const TABS = ["Curves", "Rollouts", "Log", "Config", "Cost"] as const;
type Metrics = Record<string, number>;

/** A later attempt's point replaces the earlier one of the same step: one value per step. */
function stepsOf(events: RunEvent[]): { steps: number[]; metrics: Metrics[] } {
  const byStep = new Map<number, Metrics>();
  for (const event of events) {
    if (event.kind === "step" && event.step !== null) byStep.set(event.step, (event.payload.metrics ?? {}) as Metrics);
  }
  const steps = [...byStep.keys()].sort((a, b) => a - b);
  return { steps, metrics: steps.map((step) => byStep.get(step) ?? {}) };
}

export function RunPage() {
  const { id = "" } = useParams();
  const query = useQuery<{ run: Run }>(`/rft/runs/${id}`, 3000);
  const { events, live } = useRunEvents(id);
  const [tab, setTab] = useState<(typeof TABS)[number]>("Curves");
  const run = query.data?.run;
  if (!run) return query.error ? <Problem error={query.error} /> : <Loading what="the run" />;
  return (
    <>
      <Heading title={run.name ?? run.id} note={<>{run.baseModel} · {run.environments.map((one) => one.id).join(", ")} · <code>{run.id}</code></>}>
        <RunBadge status={run.status} />
        <span className="muted small" role="status">{live ? "live" : "connecting"}</span>
        <StopButton run={run} onDone={query.reload} />
      </Heading>
      <StateNotice run={run} />
      <div className="tabs" role="tablist" aria-label="Parts of the run">
        {TABS.map((name) => (
          <button key={name} role="tab" aria-selected={name === tab} onClick={() => setTab(name)}>{name}</button>
        ))}
      </div>
      {tab === "Curves" && <Curves run={run} events={events} />}
      {tab === "Rollouts" && <RolloutsPanel runId={id} latest={stepsOf(events).steps.at(-1)} />}
      {tab === "Log" && <Log events={events} />}
      {tab === "Config" && <pre>{JSON.stringify(run.effectiveConfig, null, 2)}</pre>}
      {tab === "Cost" && <Cost runId={id} />}
    </>
  );
}

function StopButton({ run, onDone }: { run: Run; onDone: () => void }) {
  if (!["QUEUED", "PENDING", "RUNNING"].includes(run.status)) return null;
  return <button className="button" onClick={() => void put(`/rft/runs/${run.id}/stop`).then(onDone, onDone)}>Stop</button>;
}

function StateNotice({ run }: { run: Run }) {
  const cause = run.failureAnalysis?.rootCause ?? run.errorMessage;
  if (run.status === "FAILED" || run.status === "PAUSED") {
    return (
      <div className={`notice ${run.status === "FAILED" ? "bad" : ""}`} role="alert">
        <b>{run.status === "FAILED" ? "The run failed. " : "The run is paused. "}</b>{cause}
        <p className="small">Go on with <code>prime train restart {run.id}</code> once the cause is gone.</p>
      </div>
    );
  }
  if (run.status === "QUEUED") return <div className="notice">Waiting: {run.queueReason ?? "a free place in the pool"}{run.runsAhead ? `, ${run.runsAhead} ahead` : ""}.</div>;
  return run.notice ? <div className="notice">{run.notice}</div> : null;
}

function Curves({ run, events }: { run: Run; events: RunEvent[] }) {
  const { steps, metrics } = useMemo(() => stepsOf(events), [events]);
  const line = (name: string) => metrics.map((point) => point[name] ?? null);
  const last = metrics.at(-1) ?? {};
  const spread = metrics.map((point) => ({ mean: point["reward"] ?? null, std: point["reward_std"] ?? 0 }));
  const edge = (sign: number) => spread.map(({ mean, std }) => (mean === null ? null : mean + sign * std));
  const reward = useMemo(() => [
    { label: "mean reward", values: spread.map((point) => point.mean) },
    { label: "mean + σ", values: edge(1), dashed: true, colour: "--ink-soft" as const },
    { label: "mean − σ", values: edge(-1), dashed: true, colour: "--ink-soft" as const },
  ], [metrics]);
  const other = useMemo(() => ({
    loss: [{ label: "loss", values: line("loss") }],
    entropy: [{ label: "entropy", values: line("entropy") }, { label: "mismatch KL", values: line("mismatch_kl"), colour: "--graft" as const }],
    stale: [{ label: "mean staleness", values: line("staleness_mean") }, { label: "largest", values: line("staleness_max"), colour: "--graft" as const }],
    failed: [{ label: "failed share", values: line("failed_fraction") }],
  }), [metrics]);
  return (
    <div className="stack">
      <div className="grid">
        <Stat value={`${steps.at(-1) ?? 0} / ${run.maxSteps}`} label="steps" />
        <Stat value={ratio(last["reward"])} label="mean reward" />
        <Stat value={ratio(last["staleness_max"], 0)} label="largest staleness" />
        <Stat value={ratio(last["tokens_per_s"], 0)} label="tokens a second" />
      </div>
      <Chart title="Reward" steps={steps} series={reward} />
      <div className="charts">
        <Chart title="Loss" steps={steps} series={other.loss} />
        <Chart title="Entropy and mismatch" steps={steps} series={other.entropy} />
        <Chart title="Staleness" steps={steps} series={other.stale} />
        <Chart title="Failed rollouts" steps={steps} series={other.failed} range={[0, 1]} />
      </div>
    </div>
  );
}

function Log({ events }: { events: RunEvent[] }) {
  const lines = events.filter((event) => event.kind !== "step").slice(-1000).map((event) => {
    const { component = event.kind, message, state, reason, version } = event.payload as Record<string, string | undefined>;
    const text = message ?? (version === undefined ? [state, reason].filter(Boolean).join(": ") : `version ${version} is served`);
    return `${event.at.slice(11, 19)}  ${component.padEnd(13)} ${text}`;
  });
  return <pre className="logs" aria-live="polite">{lines.join("\n") || "Nothing logged yet."}</pre>;
}

function Cost({ runId }: { runId: string }) {
  const { data, error } = useQuery<RunUsage>(`/billing/runs/${runId}/usage`, 5000);
  if (!data) return error ? <Problem error={error} /> : <Loading what="the bill" />;
  return (
    <section className="card">
      <div className="head"><h2>{dollars(data.total_cost_usd)}</h2><span className="muted">everything this run caused, {count(data.total_tokens)} tokens</span></div>
      <table>
        <thead><tr><th>Meter</th><th className="number">Quantity</th><th className="number">Amount</th></tr></thead>
        <tbody>
          {(data.meters ?? []).map((row) => (
            <tr key={row.meter}><td>{row.meter.replaceAll("_", " ")}</td><td className="number">{count(row.quantity)}</td><td className="number">{dollars(row.amount_microusd / 1e6)}</td></tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

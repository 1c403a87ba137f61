/** One run as it happens: state and what to do now, curves, rollouts, log, config, cost. */
import { useMemo, useState } from "react";
import { useParams } from "react-router";
import { api } from "../api/client";
import type { Run } from "../api/shapes";
import { useAction } from "../api/use-action";
import { useQuery } from "../api/use-query";
import { type RunEvent, useRunEvents } from "../api/use-run-events";
import { Chart } from "../design/chart";
import { RunBadge } from "../design/badge";
import { Card, Stat, Stats } from "../design/card";
import { ConfirmButton } from "../design/dialog";
import { Heading } from "../design/heading";
import { Notice, Problem } from "../design/notice";
import { Skeleton } from "../design/skeleton";
import { Tabs } from "../design/tabs";
import { count, dollars, microDollars, ratio, words } from "../design/format";
import { RolloutsPanel } from "./rollouts";

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
  const query = useQuery("/api/v1/rft/runs/{run_id}", { path: { run_id: id } }, 3_000);
  const { events, live } = useRunEvents(id);
  const [tab, setTab] = useState("curves");
  const run = query.data?.run;
  if (!run) return query.problem ? <Problem of={query.problem} /> : <Skeleton what="the run" />;
  const tabs = [
    { id: "curves", label: "Curves", panel: () => <Curves run={run} events={events} /> },
    { id: "rollouts", label: "Rollouts", panel: () => <RolloutsPanel runId={id} latest={stepsOf(events).steps.at(-1)} /> },
    { id: "log", label: "Log", panel: () => <Log events={events} /> },
    { id: "config", label: "Config", panel: () => <pre tabIndex={0}>{JSON.stringify(run.effectiveConfig, null, 2)}</pre> },
    { id: "cost", label: "Cost", panel: () => <Cost runId={id} /> },
  ];
  return (
    <>
      <Heading title={run.name || run.id} note={<>{run.baseModel} · {run.environments.map((one) => String(one.id)).join(", ")} · <code>{run.id}</code></>}>
        <RunBadge status={run.status} />
        <span className="muted small" role="status">{live ? "live" : "connecting"}</span>
        <StopButton run={run} onDone={query.reload} />
      </Heading>
      <StateNotice run={run} />
      <Tabs label="Parts of the run" tabs={tabs} chosen={tab} onChoose={setTab} />
    </>
  );
}

function StopButton({ run, onDone }: { run: Run; onDone: () => void }) {
  const stop = useAction(() => api.put("/api/v1/rft/runs/{run_id}/stop", { path: { run_id: run.id } }), onDone);
  if (!["QUEUED", "PENDING", "RUNNING"].includes(run.status)) return null;
  return <ConfirmButton label="Stop" title="Stop the run?" action={stop} isDanger><p>Its newest adapter is kept. <code>prime train restart {run.id}</code> goes on from there.</p></ConfirmButton>;
}

function StateNotice({ run }: { run: Run }) {
  const cause = run.failureAnalysis?.rootCause ?? run.errorMessage;
  if (run.status === "FAILED" || run.status === "PAUSED") {
    return (
      <Notice tone={run.status === "FAILED" ? "bad" : "wait"} title={run.status === "FAILED" ? "The run failed." : "The run is paused."}>
        <p>{cause}</p>
        <p className="small">Go on with <code>prime train restart {run.id}</code> once the cause is gone.</p>
      </Notice>
    );
  }
  if (run.status === "QUEUED") return <Notice>Waiting: {run.queueReason ?? "a free place in the pool"}{run.runsAhead ? `, ${run.runsAhead} ahead` : ""}.</Notice>;
  return run.notice ? <Notice>{run.notice}</Notice> : null;
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
      <Stats label="Now">
        <Stat value={`${steps.at(-1) ?? 0} / ${run.maxSteps}`} label="steps" />
        <Stat value={ratio(last["reward"])} label="mean reward" />
        <Stat value={ratio(last["staleness_max"], 0)} label="largest staleness" />
        <Stat value={ratio(last["tokens_per_s"], 0)} label="tokens a second" />
      </Stats>
      <Chart title="Reward" steps={steps} series={reward} />
      <div className="columns">
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
  const { data, problem } = useQuery("/api/v1/billing/runs/{run_id}/usage", { path: { run_id: runId } }, 5_000);
  if (!data) return problem ? <Problem of={problem} /> : <Skeleton what="the bill" />;
  return (
    <Card title={dollars(data.total_cost_usd)} note={`Everything this run caused, ${count(data.total_tokens)} tokens.`}>
      <table>
        <thead><tr><th>Meter</th><th className="number">Quantity</th><th className="number">Amount</th></tr></thead>
        <tbody>
          {data.meters.map((row) => (
            <tr key={`${row.meter} ${row.price_version}`}><td>{words(row.meter)}</td><td className="number">{count(row.quantity)}</td><td className="number">{microDollars(row.amount_microusd)}</td></tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

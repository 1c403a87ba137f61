/** One run as it happens: state and what to do now, curves, rollouts, log, versions, configuration, cost. One stream feeds it. */
import { useCallback } from "react";
import { useParams, useSearchParams } from "react-router";
import type { Run } from "../api/shapes";
import type { Connection } from "../api/use-run-events";
import { Badge, RunBadge, type Tone } from "../design/badge";
import { Stat, Stats } from "../design/card";
import { duration, microDollars, ratio } from "../design/format";
import { Heading } from "../design/heading";
import { Problem } from "../design/notice";
import { Skeleton } from "../design/skeleton";
import { Tabs } from "../design/tabs";
import { sourcesOf } from "./run-table";
import { ConfigPanel } from "./run/config-panel";
import { CostPanel } from "./run/cost-panel";
import { type Curves, latest } from "./run/curves-model";
import { CurvesPanel } from "./run/curves-panel";
import { LogsPanel } from "./run/logs-panel";
import { type Place, RolloutsPanel } from "./run/rollouts-panel";
import { RunActions } from "./run/run-actions";
import "./run/run.css";
import { StateNotice } from "./run/state-notice";
import { HAS_ENDED, isElsewhere, useRun } from "./run/use-run";
import { VersionsPanel } from "./run/versions-panel";

const STREAM: Record<Connection, [text: string, tone: Tone, isLive: boolean]> = {
  connecting: ["connecting", "wait", true],
  live: ["live", "good", true],
  reconnecting: ["reconnecting", "wait", true],
  ended: ["all events are here", "", false],
};
const RECENT_STEPS = 20;

export function RunPage() {
  const { id = "" } = useParams();
  const [search, setSearch] = useSearchParams();
  const { run, problem, curves, happenings, connection, pulse, reload } = useRun(id);
  const go = useCallback(
    (changes: Record<string, string | number | undefined>) =>
      setSearch((known) => {
        const next = new URLSearchParams(known);
        for (const [name, value] of Object.entries(changes)) value === undefined ? next.delete(name) : next.set(name, String(value));
        return next;
      }),
    [setSearch],
  );
  if (!run) return <><Heading title="Run" />{problem ? <Problem of={problem} /> : <Skeleton what="the run" lines={8} />}</>;
  const number = (name: string) => (search.get(name) === null ? undefined : Number(search.get(name)));
  const place: Place = { step: number("step"), tag: search.get("tag") ?? "train", page: number("page") ?? 1, group: search.get("group") ?? undefined, rollout: search.get("rollout") ?? undefined };
  const tabs = [
    { id: "curves", label: "Curves", panel: () => <CurvesPanel runId={id} curves={curves} happenings={happenings} onOpen={(step) => go({ tab: "rollouts", step, group: undefined, rollout: undefined })} /> },
    { id: "rollouts", label: "Rollouts", panel: () => <RolloutsPanel runId={id} steps={curves?.steps ?? []} place={place} onGo={(change) => go({ ...change })} /> },
    { id: "logs", label: "Logs", panel: () => <LogsPanel runId={id} pulse={pulse} /> },
    { id: "versions", label: "Versions", panel: () => <VersionsPanel run={run} pulse={pulse} /> },
    { id: "config", label: "Config", panel: () => <ConfigPanel run={run} /> },
    { id: "cost", label: "Cost", panel: () => <CostPanel run={run} pulse={pulse} /> },
  ];
  return (
    <>
      <Heading title={run.name || run.id} note={<>{run.baseModel} · {sourcesOf(run).join(", ")} · <code>{run.id}</code></>}>
        <RunBadge status={run.status} />
        {isElsewhere(run) && <Badge isPlain>trained elsewhere</Badge>}
        <StreamBadge connection={connection} />
        <RunActions run={run} onDone={reload} />
      </Heading>
      <Problem of={problem} />
      <StateNotice run={run} />
      <Figures run={run} curves={curves} />
      <Tabs label="Parts of the run" tabs={tabs} chosen={search.get("tab") ?? "curves"} onChoose={(tab) => go({ tab })} />
    </>
  );
}

function StreamBadge({ connection }: { connection: Connection }) {
  const [text, tone, isLive] = STREAM[connection];
  return <span role="status"><Badge tone={tone} isLive={isLive}>{text}</Badge></span>;
}

function Figures({ run, curves }: { run: Run; curves: Curves | undefined }) {
  const recent = (curves?.series.step_time_s ?? []).slice(-RECENT_STEPS).filter((value) => value !== null);
  const stepS = recent.length ? recent.reduce((sum, value) => sum + value, 0) / recent.length : undefined;
  const left = HAS_ENDED.has(run.status) || !run.maxSteps || stepS === undefined ? undefined : (run.maxSteps - run.step) * stepS;
  const value = (name: string) => (curves ? latest(curves, name) : null);
  return (
    <Stats label="Figures of the run">
      <Stat label="Steps" value={run.maxSteps ? `${run.step} / ${run.maxSteps}` : run.step} note={left === undefined ? undefined : `about ${duration(left)} to go`} />
      <Stat label="Mean reward" value={ratio(value("reward"), 3)} note="of the newest step" />
      <Stat label="Largest staleness" value={ratio(value("staleness_max"), 0)} note="steps behind" />
      <Stat label="Trained tokens a second" value={ratio(value("tokens_per_s"), 0)} />
      <Stat label="Cost so far" value={run.usage ? microDollars(run.usage.totalMicrousd) : "—"} note="itemised under Cost" />
    </Stats>
  );
}

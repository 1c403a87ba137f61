/** The log of a run by component and level, with a search; follows live until it is paused. */
import { useState } from "react";
import { Field, Select } from "../../design/form";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { LogLines } from "./log-lines";
import { useLog } from "./use-log";

const COMPONENTS: [string, string][] = [
  ["", "all"], ["orchestrator", "orchestrator"], ["env-server", "environment"], ["judge", "group rewards"], ["trainer", "trainer"],
  ["inference", "engine"], ["eval", "evaluations"], ["control-plane", "control plane"],
];
const LEVELS: [string, string][] = [["", "all"], ["error", "errors"], ["warning", "warnings"], ["info", "info"], ["debug", "debug"]];

export function LogsPanel({ runId, pulse }: { runId: string; pulse: number }) {
  const [component, setComponent] = useState("");
  const [level, setLevel] = useState("");
  const [search, setSearch] = useState("");
  const [isPaused, setPaused] = useState(false);
  const { lines, problem, isLoading, waiting } = useLog(runId, { component, level, search }, pulse, isPaused);
  return (
    <section className="card" aria-label="Log">
      <div className="table-tools">
        <Select label="Component" options={COMPONENTS} value={component} onChange={(event) => setComponent(event.target.value)} />
        <Select label="Level" options={LEVELS} value={level} onChange={(event) => setLevel(event.target.value)} />
        <Field label="Search" className="wide" type="search" value={search} onChange={(event) => setSearch(event.target.value)} />
        <button type="button" className="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>{isPaused ? `Go on${waiting ? " (there is more)" : ""}` : "Pause"}</button>
      </div>
      <Problem of={problem} />
      {isLoading && !problem ? <Skeleton what="the log" /> : <LogLines lines={lines} isFollowing={!isPaused} />}
      <p className="small muted">The same on a terminal: <code>prime train logs {runId} -f</code></p>
    </section>
  );
}

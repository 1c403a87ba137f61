/** Everything live about one run: the run itself, its curves, what happened, and how the stream is doing. */
import { useCallback, useEffect, useRef, useState } from "react";
import { api } from "../../api/client";
import type { ApiProblem } from "../../api/problem";
import type { Run } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { type Connection, type RunEvent, useRunEvents } from "../../api/use-run-events";
import { type Curves, GROWTH_MAX, withStep } from "./curves-model";

const QUEUED_MS = 5_000;
const AT_WORK_MS = 5_000;
const PULSE_MS = 1_000;
const HAPPENINGS = new Set(["state", "eval", "checkpoint", "incident", "warning"]);
export const HAS_ENDED = new Set(["COMPLETED", "FAILED", "STOPPED"]);

export interface LiveRun {
  run: Run | undefined;
  problem: ApiProblem | undefined;
  curves: Curves | undefined;
  happenings: RunEvent[];
  connection: Connection;
  /** Grows when something came, at most once a second: whoever shows something else of the run asks again. */
  pulse: number;
  reload: () => void;
}

export function useRun(runId: string): LiveRun {
  const path = { run_id: runId };
  const [wait, setWait] = useState(QUEUED_MS);
  const query = useQuery("/api/v1/rft/runs/{run_id}", { path }, wait);
  const run = query.data?.run;
  const snapshot = useQuery("/api/v1/rft/runs/{run_id}/curves", { path });
  const timeline = useQuery("/api/v1/rft/runs/{run_id}/timeline", { path, query: { limit: 1_000 } });
  const [curves, setCurves] = useState<Curves>();
  const [happenings, setHappenings] = useState<RunEvent[]>([]);
  const [pulse, setPulse] = useState(0);
  const grown = useRef(0);
  const beat = useRef(0);
  useEffect(() => () => clearTimeout(beat.current), []);

  useEffect(() => setWait(run && HAS_ENDED.has(run.status) ? 0 : run?.status === "QUEUED" ? QUEUED_MS : AT_WORK_MS), [run?.status]);
  useEffect(() => {
    if (snapshot.data) setCurves(snapshot.data);
    grown.current = 0;
  }, [snapshot.data]);
  useEffect(() => {
    const known = timeline.data?.events;
    if (known) setHappenings((live) => merged(known, live));
  }, [timeline.data]);

  const take = useCallback(
    (events: RunEvent[]) => {
      const steps = events.filter((event) => event.kind === "step" && event.step !== null);
      const news = events.filter((event) => HAPPENINGS.has(event.kind));
      if (steps.length) setCurves((known) => known && steps.reduce(withStep, known));
      if (news.length) setHappenings((known) => merged(known, news));
      if (news.some((event) => event.kind === "state")) query.reload();
      beat.current ||= window.setTimeout(() => {
        beat.current = 0;
        setPulse((count) => count + 1);
      }, PULSE_MS);
      grown.current += steps.length;
      if (grown.current > GROWTH_MAX) snapshot.reload();
    },
    [query.reload, snapshot.reload],
  );
  const after = snapshot.data && timeline.data ? Math.min(snapshot.data.cursor, timeline.data.cursor) : null;
  const connection = useRunEvents(runId, after, run?.segment ?? 1, take);
  return { run, problem: query.problem ?? snapshot.problem ?? timeline.problem, curves, happenings, connection, pulse, reload: query.reload };
}

function merged(known: RunEvent[], added: RunEvent[]): RunEvent[] {
  const bySeq = new Map([...known, ...added].map((event) => [event.seq, event]));
  return [...bySeq.values()].sort((a, b) => a.seq - b.seq);
}

/** Whether a trainer that is not ours trains it and reports here: there is nothing to pause, to serve or to pay for. */
export const isElsewhere = (run: Run) => run.kind === "EXTERNAL";

/** One of the changes that a run's owner can ask for. */
export type Verb = "stop" | "pause" | "resume" | "restart";
export const ask = (verb: Verb, run_id: string) => api.put(`/api/v1/rft/runs/{run_id}/${verb}`, { path: { run_id } });

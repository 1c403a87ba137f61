/** A run's event log as it grows: one SSE stream, resumed by the browser with Last-Event-ID. */
import { useEffect, useState } from "react";
import { addressOf, currentTeamId } from "./client";

export interface RunEvent {
  seq: number;
  kind: "state" | "log" | "step" | "eval" | "checkpoint" | "version" | "incident" | "warning";
  step: number | null;
  at: string;
  payload: Record<string, unknown>;
}

const EVENTS_MAX = 20_000;

export function useRunEvents(runId: string): { events: RunEvent[]; live: boolean } {
  const [events, setEvents] = useState<RunEvent[]>([]);
  const [live, setLive] = useState(false);

  useEffect(() => {
    const seen = new Set<number>();
    let waiting: RunEvent[] = [];
    let frame = 0;
    // A replay of thousands of events is drawn once per frame, not once per event.
    const flush = () => {
      frame = 0;
      const arrived = waiting;
      waiting = [];
      setEvents((known) => [...known, ...arrived].slice(-EVENTS_MAX));
    };
    const source = new EventSource(addressOf("/api/v1/rft/runs/{run_id}/events", { path: { run_id: runId }, query: { team_id: currentTeamId() } }));
    const take = (message: MessageEvent<string>) => {
      const event = JSON.parse(message.data) as RunEvent;
      if (seen.has(event.seq)) return;
      seen.add(event.seq);
      waiting.push(event);
      frame ||= requestAnimationFrame(flush);
    };
    source.onopen = () => setLive(true);
    source.onerror = () => setLive(false);
    source.onmessage = take;
    // The run has ended and all of it was sent: without this the browser would ask for it again.
    source.addEventListener("end", () => {
      source.close();
      setLive(false);
    });
    return () => {
      source.close();
      cancelAnimationFrame(frame);
    };
  }, [runId]);

  return { events, live };
}

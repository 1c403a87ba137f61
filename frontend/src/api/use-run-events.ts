/**
 * A run's events as they happen, from a point on: one SSE stream. A dropped connection goes on behind the last event that was
 * seen (Last-Event-ID), so that nothing is missed and nothing comes twice; the server ends the stream when the run has ended.
 */
import { useEffect, useRef, useState } from "react";
import { addressOf, currentTeamId } from "./client";
import type { components } from "./schema";

export type RunEvent = components["schemas"]["EventAnswer"];
export type Connection = "connecting" | "live" | "reconnecting" | "ended";

const RETRY_MS = 3_000;

/** `after`: the newest event known already; null while that is not known. Another `life` of the same run opens the stream again. */
export function useRunEvents(runId: string, after: number | null, life: number, onEvents: (events: RunEvent[]) => void): Connection {
  const [connection, setConnection] = useState<Connection>("connecting");
  const latest = useRef({ onEvents, seen: 0 });
  latest.current.onEvents = onEvents;
  const isReady = after !== null;

  useEffect(() => {
    if (after === null) return;
    const known = latest.current;
    known.seen = Math.max(known.seen, after);
    let source: EventSource;
    let waiting: RunEvent[] = [];
    let frame = 0;
    let timer = 0;
    // Thousands of events at once are drawn once per frame, not once per event.
    const flush = () => {
      frame = 0;
      const arrived = waiting;
      waiting = [];
      known.onEvents(arrived);
    };
    const take = (message: MessageEvent<string>) => {
      const event = JSON.parse(message.data) as RunEvent;
      if (event.seq <= known.seen) return;
      known.seen = event.seq;
      waiting.push(event);
      frame ||= window.setTimeout(flush, 50);
    };
    const open = () => {
      const query = { after: known.seen, team_id: currentTeamId() };
      source = new EventSource(addressOf("/api/v1/rft/runs/{run_id}/events", { path: { run_id: runId }, query }));
      source.onopen = () => setConnection("live");
      source.onmessage = take;
      source.onerror = () => {
        setConnection("reconnecting");
        // The browser goes on by itself unless the answer was no stream at all (a restart of the server, a proxy's page).
        if (source.readyState === EventSource.CLOSED) timer = window.setTimeout(open, RETRY_MS);
      };
      source.addEventListener("end", () => {
        source.close();
        setConnection("ended");
      });
    };
    setConnection("connecting");
    open();
    return () => {
      source.close();
      clearTimeout(frame);
      clearTimeout(timer);
    };
    // `after` only says where to begin: later values are what the stream itself has brought.
  }, [runId, isReady, life]);

  return connection;
}

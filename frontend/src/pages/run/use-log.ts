/** Lines of a run's log by cursor: the newest first time, then what came since, each line once, however often the page asks. */
import { useEffect, useRef, useState } from "react";
import { api } from "../../api/client";
import { ApiProblem } from "../../api/problem";

export interface LogLine {
  timestamp: string;
  level: string;
  message: string;
  component: string;
  kind: string;
  env_name?: string;
}

export interface LogFilter {
  component: string;
  level: string;
  search: string;
}

const KEPT_MAX = 5_000;
const PAGE = 1_000;
const TYPING_MS = 250;
/** The server holds back the log of a run that has not begun. */
const NOT_YET = "log_not_started";

export function useLog(runId: string, filter: LogFilter, pulse: number, isPaused: boolean) {
  const key = JSON.stringify([runId, filter]);
  const [shown, setShown] = useState<{ key: string; lines: LogLine[] }>();
  const [problem, setProblem] = useState<ApiProblem>();
  const place = useRef<{ key: string; cursor: number | undefined; isBusy: boolean; isBehind: boolean }>({ key: "", cursor: undefined, isBusy: false, isBehind: false });
  const seenPulse = useRef(pulse);

  useEffect(() => {
    const isNew = place.current.key !== key;
    if (isPaused && !isNew) return;
    const mine = isNew ? { key, cursor: undefined, isBusy: false, isBehind: false } : place.current;
    place.current = mine;
    seenPulse.current = pulse;
    const timer = setTimeout(() => void read(mine), isNew ? TYPING_MS : 0);
    return () => clearTimeout(timer);

    async function read(at: typeof mine): Promise<void> {
      if (at.isBusy) {
        at.isBehind = true;
        return;
      }
      at.isBusy = true;
      try {
        do {
          at.isBehind = false;
          const page = await api.get("/api/v1/rft/runs/{run_id}/logs", { path: { run_id: runId }, query: { ...filter, cursor: at.cursor, tail_lines: PAGE } });
          if (place.current !== at) return;
          const lines = page.logs.split("\n").filter(Boolean).map((line) => JSON.parse(line) as LogLine).filter((line) => line.kind !== "step");
          at.cursor = page.cursor;
          setProblem(undefined);
          setShown((known) => ({ key, lines: [...(known?.key === key ? known.lines : []), ...lines].slice(-KEPT_MAX) }));
        } while (at.isBehind);
      } catch (reason) {
        if (!(reason instanceof ApiProblem)) throw reason;
        if (reason.code === NOT_YET) setShown({ key, lines: [] });
        else setProblem(reason);
      } finally {
        at.isBusy = false;
      }
    }
    // `key` stands for the filter's values.
  }, [key, pulse, isPaused, runId]);

  return { lines: shown?.key === key ? shown.lines : [], problem, isLoading: shown?.key !== key, waiting: isPaused && pulse !== seenPulse.current };
}

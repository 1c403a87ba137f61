/**
 * Data, failure and age of one GET: shown at once where it was seen before, asked again on demand or by the clock while
 * the page is visible. A changed request keeps the former answer until the new one is there; pages are keyed by address.
 */
import { useCallback, useEffect, useRef, useState } from "react";
import { type AnswerOf, type PathsWith, type RequestOf, addressOf, call, currentTeamId } from "./client";
import { ApiProblem } from "./problem";

export interface Query<T> {
  data: T | undefined;
  problem: ApiProblem | undefined;
  /** The data belongs to an earlier request than the one being asked. */
  isStale: boolean;
  reload: () => void;
}

const SEEN_MAX = 200;
const BACKOFF_MAX_MS = 60_000;
const seen = new Map<string, unknown>();

/** Another user or team: nothing seen so far may be shown. */
export const forgetAnswers = () => seen.clear();

function remember(key: string, value: unknown): void {
  seen.delete(key);
  seen.set(key, value);
  const oldest = seen.keys().next();
  if (seen.size > SEEN_MAX && !oldest.done) seen.delete(oldest.value);
}

/** `request` null: ask nothing yet. */
export function useQuery<P extends PathsWith<"get">>(path: P, request: RequestOf<P, "get"> | null, everyMs = 0): Query<AnswerOf<P, "get">> {
  type Answer = AnswerOf<P, "get">;
  const key = request === null ? null : `${currentTeamId()} ${addressOf(path, request)}`;
  const latest = useRef(request);
  latest.current = request;
  const [answer, setAnswer] = useState<{ key: string; data: Answer }>();
  const [problem, setProblem] = useState<{ key: string; value: ApiProblem }>();
  const [turn, setTurn] = useState(0);
  const reload = useCallback(() => setTurn((count) => count + 1), []);

  useEffect(() => {
    if (key === null || latest.current === null) return;
    const leaving = new AbortController();
    let timer = 0;
    let failures = 0;
    const ask = () => {
      (call("get", path, { ...latest.current, signal: leaving.signal }) as Promise<Answer>).then(
        (data) => {
          failures = 0;
          remember(key, data);
          setAnswer({ key, data });
          setProblem(undefined);
        },
        (reason: unknown) => {
          if (leaving.signal.aborted) return;
          if (!(reason instanceof ApiProblem)) throw reason;
          failures += 1;
          setProblem({ key, value: reason });
        },
      ).finally(plan);
    };
    // The next question is planned when the last one is answered: a slow server is never asked twice at once.
    const plan = () => {
      if (everyMs && !leaving.signal.aborted) timer = window.setTimeout(tick, Math.min(everyMs * 2 ** failures, BACKOFF_MAX_MS));
    };
    const tick = () => (document.visibilityState === "visible" ? ask() : plan());
    ask();
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [key, everyMs, turn, path]);

  const data = answer?.key === key ? answer?.data : ((key === null ? undefined : (seen.get(key) as Answer | undefined)) ?? answer?.data);
  const isStale = answer !== undefined && answer.key !== key;
  return { data, problem: problem?.key === key ? problem?.value : undefined, isStale, reload };
}

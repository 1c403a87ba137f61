/** One change that the user asks for: whether it is under way, and why it failed. */
import { useCallback, useRef, useState } from "react";
import { ApiProblem } from "./problem";

export interface Action<A extends unknown[]> {
  /** True when it succeeded. A second call while one is under way does nothing. */
  run: (...values: A) => Promise<boolean>;
  isBusy: boolean;
  problem: ApiProblem | undefined;
  reset: () => void;
}

export function useAction<A extends unknown[], R>(perform: (...values: A) => Promise<R>, onDone?: (result: R) => void): Action<A> {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ApiProblem>();
  const latest = useRef({ perform, onDone, isBusy: false });
  latest.current.perform = perform;
  latest.current.onDone = onDone;

  const run = useCallback(async (...values: A) => {
    if (latest.current.isBusy) return false;
    latest.current.isBusy = true;
    setBusy(true);
    setProblem(undefined);
    try {
      latest.current.onDone?.(await latest.current.perform(...values));
      return true;
    } catch (reason) {
      if (!(reason instanceof ApiProblem)) throw reason;
      setProblem(reason);
      return false;
    } finally {
      latest.current.isBusy = false;
      setBusy(false);
    }
  }, []);
  const reset = useCallback(() => setProblem(undefined), []);
  return { run, isBusy, problem, reset };
}

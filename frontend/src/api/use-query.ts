/** Loading, error and data of one GET, refreshed on demand or by the clock while the page is visible. */
import { useCallback, useEffect, useState } from "react";
import { ApiError, get } from "./client";

export interface Query<T> {
  data: T | undefined;
  error: ApiError | undefined;
  reload: () => void;
}

export function useQuery<T>(path: string | null, everyMs = 0): Query<T> {
  const [data, setData] = useState<T>();
  const [error, setError] = useState<ApiError>();
  const [turn, setTurn] = useState(0);
  const reload = useCallback(() => setTurn((n) => n + 1), []);

  useEffect(() => {
    if (path === null) return;
    let current = true;
    get<T>(path).then(
      (value) => current && (setData(value), setError(undefined)),
      (reason: unknown) => {
        if (!current) return;
        if (reason instanceof ApiError) setError(reason);
        else setError(new ApiError(0, "offline", "The server cannot be reached.", "It will be asked again by itself.", {}));
      },
    );
    return () => {
      current = false;
    };
  }, [path, turn]);

  useEffect(() => {
    if (!everyMs) return;
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), everyMs);
    return () => clearInterval(timer);
  }, [everyMs, reload]);

  return { data, error, reload };
}

/** A moment as its age, with the exact time for those who point at it; it grows older while the page is open. */
import { useEffect, useState } from "react";
import { NOTHING, ago, exactly } from "./format";

const TICK_MS = 20_000;

export function Age({ of: iso }: { of: string | null | undefined }) {
  const [, setTurn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTurn((turn) => turn + 1), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  if (!iso) return <span className="muted">{NOTHING}</span>;
  return <time className="muted nowrap" dateTime={iso} title={exactly(iso)}>{ago(iso)}</time>;
}

/** Short confirmations at the corner of the page; a failure never goes here. */
import { type ReactNode, createContext, useCallback, useContext, useMemo, useState } from "react";

const SHOWN_MS = 6_000;
const SHOWN_MAX = 3;

interface Toast {
  id: number;
  text: string;
}

const Say = createContext<(text: string) => void>(() => {});

/** `const say = useToast(); say("The key is revoked.")` */
export const useToast = () => useContext(Say);

let last = 0;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [toasts, setToasts] = useState<Toast[]>([]);
  const drop = useCallback((id: number) => setToasts((known) => known.filter((toast) => toast.id !== id)), []);
  const say = useMemo(
    () => (text: string) => {
      const id = ++last;
      setToasts((known) => [...known, { id, text }].slice(-SHOWN_MAX));
      setTimeout(() => drop(id), SHOWN_MS);
    },
    [drop],
  );
  return (
    <Say value={say}>
      {children}
      <div className="toasts" role="status">
        {toasts.map(({ id, text }) => (
          <div key={id} className="toast">
            <span>{text}</span>
            <button type="button" className="button slim" onClick={() => drop(id)} aria-label="Dismiss">
              ✕
            </button>
          </div>
        ))}
      </div>
    </Say>
  );
}

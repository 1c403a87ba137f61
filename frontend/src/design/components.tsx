/** The dashboard's few building blocks. Presentation only: no fetching, no routing rules. */
import type { ReactNode } from "react";
import type { ApiError } from "../api/client";
import type { BadgeState, RunStatus } from "../api/types";

export function Heading({ title, note, children }: { title: string; note?: ReactNode; children?: ReactNode }) {
  return (
    <header className="head">
      <div>
        <h1>{title}</h1>
        {note && <p className="muted">{note}</p>}
      </div>
      {children && <div className="row">{children}</div>}
    </header>
  );
}

export function Stat({ value, label }: { value: ReactNode; label: string }) {
  return (
    <div className="card stat">
      <b>{value}</b>
      <span>{label}</span>
    </div>
  );
}

/** What stands where nothing is yet: why, and the command that changes it. */
export function Empty({ title, command }: { title: string; command?: string }) {
  return (
    <div className="empty">
      <h3>{title}</h3>
      {command && <pre>{command}</pre>}
    </div>
  );
}

export function Problem({ error }: { error: ApiError | undefined }) {
  if (!error) return null;
  return (
    <div className="notice bad" role="alert">
      {error.message} {error.hint}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p className="muted" role="status">
      Loading {what} …
    </p>
  );
}

const RUN_TONE: Record<RunStatus, string> = {
  QUEUED: "wait", PENDING: "wait live", RUNNING: "good live", PAUSING: "wait live", PAUSED: "wait",
  COMPLETED: "good", FAILED: "bad", STOPPED: "",
};

export function RunBadge({ status }: { status: RunStatus }) {
  return <span className={`badge ${RUN_TONE[status]}`}>{status.toLowerCase()}</span>;
}

const RELEASE_TONE: Record<BadgeState, [string, string]> = {
  PENDING: ["wait", "waiting for its check"],
  BUILDING: ["wait live", "being checked"],
  GREEN: ["good", "runs"],
  RED: ["bad", "broken"],
};

export function ReleaseBadge({ state }: { state: BadgeState | null | undefined }) {
  if (!state) return <span className="badge">no release</span>;
  const [tone, text] = RELEASE_TONE[state];
  return <span className={`badge ${tone}`}>{text}</span>;
}

export function Field(props: { name: string; label: string; type?: string; hint?: string; problem?: string; autoComplete?: string; required?: boolean }) {
  const { name, label, type = "text", hint, problem, autoComplete, required = true } = props;
  return (
    <div className="field">
      <label htmlFor={name}>{label}</label>
      <input id={name} name={name} type={type} autoComplete={autoComplete} required={required} aria-invalid={problem !== undefined} />
      {problem ? <span className="problem">{problem}</span> : hint && <span className="hint muted">{hint}</span>}
    </div>
  );
}

/** What the user must know: notices that stay, and how a failed request is told. */
import type { ReactNode } from "react";
import type { ApiProblem } from "../api/problem";
import type { Tone } from "./badge";

/** Only what needs attention at once interrupts a screen reader. */
export function Notice({ tone = "wait", title, children }: { tone?: Extract<Tone, "good" | "bad" | "wait">; title?: ReactNode; children?: ReactNode }) {
  return (
    <div className={`notice ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      {title && <b>{title}</b>}
      {children}
    </div>
  );
}

/** A failure in words: what happened, what to do, and the id that support asks for. */
export function Problem({ of: problem }: { of: ApiProblem | undefined }) {
  if (!problem) return null;
  return (
    <Notice tone="bad">
      <p>{problem.message}</p>
      {problem.hint && <p className="small">{problem.hint}</p>}
      {problem.requestId && <p className="request-id">Request <code>{problem.requestId}</code></p>}
    </Notice>
  );
}

/** What happened to the run, in words: states, resumed attempts, incidents, warnings, evaluations, checkpoints; newest first. */
import { useState } from "react";
import type { RunEvent } from "../../api/use-run-events";
import { Badge, type Tone } from "../../design/badge";
import { Card } from "../../design/card";
import { exactly, ratio, words } from "../../design/format";

const SHOWN = 12;
const TONES: Partial<Record<string, Tone>> = { incident: "bad", warning: "wait", eval: "graft", checkpoint: "good" };
const NAMES: Partial<Record<string, string>> = { eval: "evaluation" };

function told({ kind, step, payload }: RunEvent): string {
  if (kind === "eval") return `${String(payload.environment)} after step ${step}: reward ${ratio(payload.reward_mean, 3)} over ${String(payload.rollouts)} rollouts, ${String(payload.failed ?? 0)} failed`;
  if (kind === "checkpoint") return `step ${step} is committed`;
  if (kind === "state") return [words(String(payload.state)).toLowerCase(), payload.reason].filter(Boolean).join(": ");
  return String(payload.message ?? "");
}

export function Happenings({ events }: { events: RunEvent[] }) {
  const [isWhole, setWhole] = useState(false);
  const newest = [...events].reverse();
  const shown = isWhole ? newest : newest.slice(0, SHOWN);
  if (newest.length === 0) return null;
  return (
    <Card title="What happened" note="Dashed lines in the charts are attempts that went on from an earlier step; dotted red ones are incidents.">
      <ol className="happenings">
        {shown.map((event) => (
          <li key={event.seq}>
            <time dateTime={event.at} title={exactly(event.at)}>{event.at.slice(11, 19)}</time>
            <Badge tone={TONES[event.kind]} isPlain>{NAMES[event.kind] ?? event.kind}</Badge>
            <span>{told(event)}</span>
          </li>
        ))}
      </ol>
      {newest.length > SHOWN && <div><button type="button" className="button slim" onClick={() => setWhole(!isWhole)}>{isWhole ? "Show the newest alone" : `Show all ${newest.length}`}</button></div>}
    </Card>
  );
}

/** What each model answered to one example: the first whole, the others as their difference from it, line by line. */
import { useState } from "react";
import { useQuery } from "../../api/use-query";
import { Badge } from "../../design/badge";
import { ratio } from "../../design/format";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Line, differenceOf } from "./line-difference";

type Sample = Record<string, unknown>;

/** Samples are open documents; of a conversation, the model's turns count. */
function answerOf(sample: Sample | undefined): string {
  const said = sample?.completion;
  if (!Array.isArray(said)) return String(said ?? sample?.error ?? "");
  const turns = said.filter((turn): turn is { role?: string; content?: unknown } => typeof turn === "object" && turn !== null);
  const spoken = turns.filter((turn) => turn.role === undefined || turn.role === "assistant").map((turn) => (typeof turn.content === "string" ? turn.content : JSON.stringify(turn.content)));
  return spoken.join("\n") || String(sample?.error ?? "");
}

const MARKS = { same: " ", removed: "−", added: "+" } as const;

export function Answers({ ids, example, models }: { ids: string; example: string; models: string[] }) {
  const query = useQuery("/api/v1/evaluations/compare/example", { query: { ids, example } });
  const [number, setNumber] = useState(0);
  if (!query.data) return query.problem ? <Problem of={query.problem} /> : <Skeleton what="answers" />;
  const [first, ...others] = query.data.evaluations.map((one) => one.samples);
  const rollouts = Math.max(0, ...query.data.evaluations.map((one) => one.samples.length));
  const base = answerOf(first?.[number]);
  return (
    <div className="stack">
      {rollouts > 1 && (
        <span className="row" role="group" aria-label="Rollouts">
          {Array.from({ length: rollouts }, (_, index) => <button key={index} type="button" className="button slim" aria-pressed={index === number} onClick={() => setNumber(index)}>{index}</button>)}
        </span>
      )}
      <Answer model={models[0] ?? ""} sample={first?.[number]} lines={base.split("\n").map((text) => ({ kind: "same", text }))} />
      {others.map((samples, index) => <Answer key={models[index + 1] ?? index} model={models[index + 1] ?? ""} sample={samples[number]} lines={differenceOf(base, answerOf(samples[number]))} />)}
    </div>
  );
}

function Answer({ model, sample, lines }: { model: string; sample: Sample | undefined; lines: Line[] }) {
  return (
    <div className="turn answer">
      <b>{model}</b> <Badge tone={typeof sample?.reward === "number" ? "good" : "bad"} isPlain>{sample ? ratio(sample.reward) : "no rollout"}</Badge>
      <pre tabIndex={0}>{lines.map((line, index) => <div key={index} className={line.kind === "added" ? "line-added" : line.kind === "removed" ? "line-removed" : undefined}>{`${MARKS[line.kind]} ${line.text}`}</div>)}</pre>
    </div>
  );
}

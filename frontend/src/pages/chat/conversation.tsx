/** Turns with one model, each answer with its witness: which weights gave it. */
import { useLayoutEffect, useRef } from "react";
import { Badge } from "../../design/badge";
import { Card } from "../../design/card";
import { shortDigest } from "../../design/format";
import { Problem } from "../../design/notice";
import type { Side, Turn } from "./use-conversation";

/** A reader who is further than this from the end has scrolled away from it, and is left there. */
const NEAR_PX = 240;

export function Conversation({ side, name }: { side: Side; name: string }) {
  const end = useFollowedEnd(side.turns);
  return (
    <Card title={name} note={<code>{side.model}</code>}>
      {side.turns.length === 0 && <p className="muted">Nothing asked yet.</p>}
      <ol className="turns" aria-live="polite" aria-busy={side.isBusy}>
        {side.turns.map((turn, index) => <li key={index} ref={index === side.turns.length - 1 ? end : null}><TurnView turn={turn} isLast={side.isBusy && index === side.turns.length - 1} /></li>)}
      </ol>
    </Card>
  );
}

/** The newest turn, kept in sight as it grows: above the composer, which the style sheet leaves room for. */
function useFollowedEnd(turns: Turn[]) {
  const end = useRef<HTMLLIElement>(null);
  const last = turns[turns.length - 1];
  const seen = useRef(0);
  useLayoutEffect(() => {
    const isNew = turns.length > seen.current;
    seen.current = turns.length;
    const isNear = end.current && end.current.getBoundingClientRect().bottom < window.innerHeight + NEAR_PX;
    if (isNew || isNear) end.current?.scrollIntoView({ block: "nearest" });
  }, [turns.length, last?.answer, last?.outcome, last?.problem]);
  return end;
}

function TurnView({ turn, isLast }: { turn: Turn; isLast: boolean }) {
  return (
    <>
      <div className="turn"><b>You</b>{turn.question}</div>
      <div className="turn answer">
        <b>{turn.model}</b>
        {turn.answer || (isLast ? <span className="muted">…</span> : <span className="muted">(an empty answer)</span>)}
      </div>
      {turn.isStopped && <Badge>stopped</Badge>}
      <Problem of={turn.problem} />
      {turn.outcome && <Witness outcome={turn.outcome} />}
    </>
  );
}

function Witness({ outcome }: { outcome: NonNullable<Turn["outcome"]> }) {
  const version = /\.v(\d+)$/.exec(outcome.name)?.[1];
  return (
    <p className="row small muted">
      <Badge tone={version ? "graft" : ""}>{version ? `adapter version ${version}` : "base weights"} <code title={outcome.digest}>{shortDigest(outcome.digest)}</code></Badge>
      {outcome.outputTokens !== undefined && <span>{outcome.inputTokens} tokens in, {outcome.outputTokens} out</span>}
      {outcome.finish === "length" && <span>cut at the longest answer</span>}
    </p>
  );
}

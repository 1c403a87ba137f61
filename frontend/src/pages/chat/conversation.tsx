/** Turns with one model, each answer with its witness: which weights gave it. */
import { Badge } from "../../design/badge";
import { Card } from "../../design/card";
import { shortDigest } from "../../design/format";
import { Problem } from "../../design/notice";
import type { Side, Turn } from "./use-conversation";

export function Conversation({ side, name }: { side: Side; name: string }) {
  return (
    <Card title={name} note={<code>{side.model}</code>}>
      {side.turns.length === 0 && <p className="muted">Nothing asked yet.</p>}
      <ol className="turns" aria-live="polite" aria-busy={side.isBusy}>
        {side.turns.map((turn, index) => <li key={index}><TurnView turn={turn} isLast={side.isBusy && index === side.turns.length - 1} /></li>)}
      </ol>
    </Card>
  );
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

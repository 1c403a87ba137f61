/** Tokens as running text. One stop in the tab order: arrows walk from token to token, and the line below says what each is. */
import { Fragment, type KeyboardEvent, type MouseEvent, useState } from "react";
import type { Tokens, Trace } from "../../api/shapes";
import { LEVELS, endsLine, level, visible } from "./token-words";

const MOVES: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -10, ArrowDown: 10 };

export function TokenStrip({ tokens, calls }: { tokens: Tokens; calls: Trace["calls"] }) {
  const [at, setAt] = useState(() => Math.max(0, tokens.sampled.indexOf(true)));
  const last = tokens.token_ids.length - 1;
  const move = (event: KeyboardEvent) => {
    const next = event.key === "Home" ? 0 : event.key === "End" ? last : at + (MOVES[event.key] ?? 0);
    if (next === at) return;
    event.preventDefault();
    setAt(Math.min(last, Math.max(0, next)));
  };
  const point = (event: MouseEvent) => {
    const index = (event.target as HTMLElement).dataset.token;
    if (index !== undefined) setAt(Number(index));
  };
  return (
    <>
      <Legend />
      <div className="tokens" role="group" tabIndex={0} aria-label="Tokens: arrow keys walk through them" aria-describedby="token-shown" onKeyDown={move} onMouseOver={point} onClick={point}>
        {tokens.token_ids.map((id, index) => (
          <Fragment key={index}>
            {tokens.calls[index] !== tokens.calls[index - 1] && <CallMark number={tokens.calls[index] ?? 0} calls={calls} />}
            <span data-token={index} className={classOf(tokens, index, index === at)}>{visible(tokens.texts?.[index], id)}</span>
            {endsLine(tokens.texts?.[index]) && <br />}
          </Fragment>
        ))}
      </div>
      <p id="token-shown" className="token-shown" aria-live="polite">{described(tokens, calls, at)}</p>
    </>
  );
}

function classOf(tokens: Tokens, index: number, isCurrent: boolean): string {
  const logprob = tokens.logprobs[index];
  const look = tokens.sampled[index] && typeof logprob === "number" ? `sampled level-${level(logprob)}` : "read";
  return `token ${look}${tokens.sampled[index] && !tokens.trained[index] ? " untrained" : ""}${isCurrent ? " current" : ""}`;
}

function CallMark({ number, calls }: { number: number; calls: Trace["calls"] }) {
  const call = calls[number];
  return <span className="call-mark">call {number + 1} · {call?.policy_version === null || call === undefined ? "base model" : `version ${call.policy_version}`}</span>;
}

function described(tokens: Tokens, calls: Trace["calls"], at: number): string {
  const id = tokens.token_ids[at];
  if (id === undefined) return "";
  const logprob = tokens.logprobs[at];
  const call = calls[tokens.calls[at] ?? 0];
  const version = call?.policy_version ?? "of the base model";
  const said = `Token ${tokens.offset + at + 1} of ${tokens.total}: id ${id}, ${JSON.stringify(tokens.texts?.[at] ?? "")}`;
  if (!tokens.sampled[at] || logprob === null || logprob === undefined) return `${said}. Read, not sampled: not trained on.`;
  const chance = `log-probability ${logprob.toFixed(3).replace("-", "−")} (probability ${Math.exp(logprob).toPrecision(3)})`;
  return `${said}. Sampled by version ${version}, ${chance}, ${tokens.trained[at] ? "trained on" : "not trained on"}.`;
}

function Legend() {
  return (
    <ul className="token-legend" aria-label="What the colours mean">
      <li><span className="token read">read</span> prompt and tool answers</li>
      {LEVELS.map((text, index) => <li key={text}><span className={`token sampled level-${index}`}>sampled</span> probability {text}</li>)}
      <li><span className="token sampled level-0 untrained">sampled</span> masked: not trained on</li>
    </ul>
  );
}

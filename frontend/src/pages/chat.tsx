/** Talks to a model, or to two side by side; every answer says which adapter version and digest gave it. */
import { useRef, useState } from "react";
import { useSearchParams } from "react-router";
import { useQuery } from "../api/use-query";
import { Card } from "../design/card";
import { Empty } from "../design/empty";
import { Field, Select, TextArea } from "../design/form";
import { Heading } from "../design/heading";
import { Notice, Problem } from "../design/notice";
import { Skeleton } from "../design/skeleton";
import { Conversation } from "./chat/conversation";
import { type Sampling, useConversation } from "./chat/use-conversation";

const REFRESH_MS = 10_000;

export function ChatPage() {
  const models = useQuery("/api/inference/v1/models", {}, REFRESH_MS);
  const rows = models.data?.data ?? [];
  return (
    <>
      <Heading title="Chat" note="Ask a model, or two at once to compare. It is billed by the token like any call of the API." />
      <Problem of={models.problem} />
      {!models.data && !models.problem && <Skeleton what="models" />}
      {models.data && rows.length === 0 && <Card><Empty title="No model is served." command="prime deployments create ADAPTER_ID" /></Card>}
      {rows.length > 0 && <Chat models={rows} />}
    </>
  );
}

interface Model {
  id: string;
  display_name: string;
  parent?: string | null;
}

function Chat({ models }: { models: Model[] }) {
  const [address, setAddress] = useSearchParams();
  const first = address.get("model") ?? models[0]?.id ?? "";
  const second = address.get("compare") ?? "";
  const [sampling, setSampling] = useState<Sampling>({ temperature: 0.7, max_tokens: 256 });
  const [system, setSystem] = useState("");
  const left = useConversation(first, system, sampling);
  const right = useConversation(second, system, sampling);
  const choose = (changes: Record<string, string>) => setAddress(Object.entries({ model: first, compare: second, ...changes }).filter(([, id]) => id), { replace: true });
  const options = models.map((model) => [model.id, model.parent ? `${model.display_name} (adapter)` : `${model.display_name} (base)`] as const);
  const isKnown = models.some((model) => model.id === first);
  const sides = second ? [left, right] : [left];
  const parent = models.find((model) => model.id === first)?.parent;
  return (
    <>
      {!isKnown && <Notice>The model <code>{first}</code> is not served now. Deploy it on the models page, or choose another one.</Notice>}
      <Card>
        <div className="fields">
          <Select label="Model" value={first} options={options} onChange={(event) => choose({ model: event.currentTarget.value })} />
          <Select label="Compare with" value={second} options={[["", "Nothing"], ...options]} onChange={(event) => choose({ compare: event.currentTarget.value })} />
          <Field label="Temperature" type="number" min={0} max={2} step={0.1} value={sampling.temperature} onChange={(event) => setSampling({ ...sampling, temperature: event.currentTarget.valueAsNumber || 0 })} />
          <Field label="Longest answer, tokens" type="number" min={1} step={1} value={sampling.max_tokens} onChange={(event) => setSampling({ ...sampling, max_tokens: event.currentTarget.valueAsNumber || 1 })} />
        </div>
        {parent && !second && <div><button type="button" className="button slim" onClick={() => choose({ compare: parent })}>Compare with its base model</button></div>}
        <details>
          <summary>System prompt</summary>
          <TextArea label="System prompt" value={system} onChange={(event) => setSystem(event.currentTarget.value)} />
        </details>
      </Card>
      <div className={second ? "columns even" : "stack"}>
        {sides.map((side, index) => <Conversation key={index} side={side} name={models.find((model) => model.id === side.model)?.display_name ?? side.model} />)}
      </div>
      <Composer isBusy={sides.some((side) => side.isBusy)} hasTurns={left.turns.length > 0} onAsk={(text) => sides.forEach((side) => side.ask(text))} onStop={() => sides.forEach((side) => side.stop())} onClear={() => sides.forEach((side) => side.clear())} />
    </>
  );
}

function Composer({ isBusy, hasTurns, onAsk, onStop, onClear }: { isBusy: boolean; hasTurns: boolean; onAsk: (text: string) => void; onStop: () => void; onClear: () => void }) {
  const [text, setText] = useState("");
  const form = useRef<HTMLFormElement>(null);
  const send = () => {
    if (!text.trim() || isBusy) return;
    onAsk(text.trim());
    setText("");
  };
  return (
    <form className="card composer" ref={form} onSubmit={(event) => { event.preventDefault(); send(); }}>
      <TextArea
        label="Message"
        hint="Enter sends, Shift and Enter begin a new line."
        value={text}
        rows={2}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      <div className="row">
        {isBusy ? <button type="button" className="button" onClick={onStop}>Stop</button> : <button className="button primary" disabled={!text.trim()}>Send</button>}
        {hasTurns && !isBusy && <button type="button" className="button quiet" onClick={onClear}>Begin anew</button>}
      </div>
    </form>
  );
}

/** The samples of an evaluation, found by reward; each opens to its conversation. */
import { useState } from "react";
import { useQuery } from "../../api/use-query";
import { Badge } from "../../design/badge";
import { Card } from "../../design/card";
import { Empty } from "../../design/empty";
import { Field } from "../../design/form";
import { ratio } from "../../design/format";
import { Problem } from "../../design/notice";
import { Pager } from "../../design/pager";
import { Skeleton } from "../../design/skeleton";

const PAGE = 25;

/** Samples are open documents: a client may push any. What is not understood is shown as JSON. */
type Sample = Record<string, unknown>;

interface Message {
  role: string;
  content: unknown;
}

const number = (text: string) => (text.trim() === "" || Number.isNaN(Number(text)) ? undefined : Number(text));

function messagesIn(value: unknown): Message[] {
  if (typeof value === "string") return [{ role: "text", content: value }];
  return Array.isArray(value) ? value.filter((one): one is Message => typeof one === "object" && one !== null && "role" in one) : [];
}

export function SamplesPanel({ evaluationId, total }: { evaluationId: string; total: number }) {
  const [page, setPage] = useState(1);
  const [bounds, setBounds] = useState({ min: "", max: "" });
  const query = useQuery("/api/v1/evaluations/{evaluation_id}/samples", {
    path: { evaluation_id: evaluationId },
    query: { page, limit: PAGE, min_reward: number(bounds.min), max_reward: number(bounds.max) },
  });
  const bound = (name: "min" | "max") => (value: string) => {
    setBounds({ ...bounds, [name]: value });
    setPage(1);
  };
  const samples = query.data?.samples ?? [];
  return (
    <Card>
      {total > 0 && (
        <div className="table-tools">
          <Field label="Reward at least" type="number" step="any" value={bounds.min} onChange={(event) => bound("min")(event.currentTarget.value)} />
          <Field label="Reward at most" type="number" step="any" value={bounds.max} onChange={(event) => bound("max")(event.currentTarget.value)} />
        </div>
      )}
      <Problem of={query.problem} />
      {!query.data && !query.problem && <Skeleton what="samples" />}
      {query.data && samples.length === 0 && <Empty title={total === 0 ? "No sample yet." : "No sample has such a reward."} />}
      <ul className="samples">
        {samples.map((sample, index) => <li key={`${page} ${String(sample.rollout_id ?? index)}`}><SampleView sample={sample} /></li>)}
      </ul>
      {query.data && samples.length > 0 && <Pager page={page} pages={query.data.total_pages} total={query.data.total} what="samples" onPage={setPage} />}
    </Card>
  );
}

function SampleView({ sample }: { sample: Sample }) {
  const prompt = messagesIn(sample.prompt);
  const completion = messagesIn(sample.completion);
  const answer = completion.at(-1)?.content;
  const name = String(sample.task_key ?? sample.example_id ?? sample.task ?? "sample");
  return (
    <details>
      <summary className="sample">
        <Badge tone={typeof sample.reward === "number" ? "good" : "bad"} isPlain>{ratio(sample.reward)}</Badge>
        <span className="mono">{name}</span>
        <span className="muted truncate wide">{typeof answer === "string" ? answer : String(sample.error ?? "")}</span>
      </summary>
      <div className="stack">
        {typeof sample.error === "string" && sample.error && <p className="complaint">{sample.error}</p>}
        {[...prompt, ...completion].map((message, index) => (
          <div key={index} className={`turn ${message.role === "assistant" ? "answer" : ""}`}>
            <b>{message.role}</b>
            {typeof message.content === "string" ? message.content : JSON.stringify(message.content, null, 2)}
          </div>
        ))}
        <details><summary>All of it</summary><pre tabIndex={0}>{JSON.stringify(sample, null, 2)}</pre></details>
      </div>
    </details>
  );
}

/** The rollouts of one step: reward, advantage, who answered, and the conversation. */
import { useState } from "react";
import { useQuery } from "../api/use-query";
import { Empty } from "../design/empty";
import { Problem } from "../design/notice";
import { Skeleton } from "../design/skeleton";
import { ratio } from "../design/format";

interface Sample {
  rollout_id: string;
  task_key: string;
  state: string;
  reward: number | null;
  advantage: number | null;
  policy_version_min: number;
  staleness: number;
  error: string | null;
  preview: string;
  messages?: { role: string; content: unknown }[];
}

export function RolloutsPanel({ runId, latest }: { runId: string; latest: number | undefined }) {
  const [chosen, setChosen] = useState<number>();
  const step = chosen ?? latest;
  const query = useQuery("/api/v1/rft/runs/{run_id}/samples", step === undefined ? null : { path: { run_id: runId }, query: { step, limit: 100 } });
  if (step === undefined) return <section className="card"><Empty title="The first rollouts are on their way." /></section>;
  return (
    <section className="card">
      <div className="head">
        <h2>Step {step}</h2>
        <div className="row">
          <button className="button" disabled={step <= 1} onClick={() => setChosen(step - 1)}>Earlier</button>
          <button className="button" disabled={step >= (latest ?? 0)} onClick={() => setChosen(step + 1)}>Later</button>
        </div>
      </div>
      <Problem of={query.problem} />
      {!query.data && !query.problem && <Skeleton what="rollouts" />}
      {(query.data?.samples as unknown as Sample[] | undefined)?.map((sample) => <Rollout key={sample.rollout_id} sample={sample} />)}
    </section>
  );
}

function Rollout({ sample }: { sample: Sample }) {
  const tone = sample.state === "ok" ? "good" : "bad";
  return (
    <details>
      <summary>
        <span className={`badge ${tone}`}>{sample.state === "ok" ? `reward ${ratio(sample.reward)}` : sample.state}</span>{" "}
        <span className="muted small">{sample.preview || sample.task_key} · advantage {ratio(sample.advantage)} · version {sample.policy_version_min} · staleness {sample.staleness}</span>
      </summary>
      <div className="stack">
        {sample.error && <p className="problem">{sample.error}</p>}
        {(sample.messages ?? []).map((message, index) => (
          <div key={index} className={`turn ${message.role}`}>
            <b>{message.role}</b>
            {typeof message.content === "string" ? message.content : JSON.stringify(message.content)}
          </div>
        ))}
      </div>
    </details>
  );
}

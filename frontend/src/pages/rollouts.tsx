/** The rollouts of one step: reward, advantage, who answered, and the conversation. */
import { useState } from "react";
import type { Sample } from "../api/types";
import { useQuery } from "../api/use-query";
import { Empty, Loading, Problem } from "../design/components";
import { ratio } from "../design/format";

export function RolloutsPanel({ runId, latest }: { runId: string; latest: number | undefined }) {
  const [chosen, setChosen] = useState<number>();
  const step = chosen ?? latest;
  const query = useQuery<{ samples: Sample[] }>(step === undefined ? null : `/rft/runs/${runId}/samples?step=${step}&limit=100`);
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
      <Problem error={query.error} />
      {!query.data && !query.error && <Loading what="rollouts" />}
      {query.data?.samples.map((sample) => <Rollout key={sample.rollout_id} sample={sample} />)}
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

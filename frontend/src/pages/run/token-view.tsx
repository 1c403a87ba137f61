/** The tokens of a rollout as the trainer saw them: text, mask, log-probability by colour, and which version sampled them. */
import { useState } from "react";
import type { Trace } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { Card } from "../../design/card";
import { Empty } from "../../design/empty";
import { count } from "../../design/format";
import { Problem } from "../../design/notice";
import { Pager } from "../../design/pager";
import { Skeleton } from "../../design/skeleton";
import { TokenStrip } from "./token-strip";
import { TokenTable } from "./token-table";

const PAGE = 1_024;

export function TokenView({ runId, rolloutId, seat, trace }: { runId: string; rolloutId: string; seat: number; trace: Trace }) {
  const [branch, setBranch] = useState(0);
  const [page, setPage] = useState(1);
  const [asTable, setAsTable] = useState(false);
  const path = { run_id: runId, rollout_id: rolloutId };
  const query = { trace: seat, branch, offset: (page - 1) * PAGE, limit: PAGE };
  const { data, problem } = useQuery("/api/v1/rft/runs/{run_id}/rollouts/{rollout_id}/tokens", trace.branches.length ? { path, query } : null);
  const size = trace.branches[branch];
  if (!size) {
    return <Card title="Tokens"><Empty title="No token ids were recorded."><p>Evaluations call the chat route, which has none; so does a rollout that failed before its first call.</p></Empty></Card>;
  }
  const choose = (chosen: number) => {
    setBranch(chosen);
    setPage(1);
  };
  return (
    <Card
      title="Tokens"
      note={`${count(size.tokens_count)} tokens, ${count(size.sampled_count)} of them sampled; ${size.trained ? "the step trained on the sampled ones" : "the step did not train on this stream"}.`}
      actions={<button type="button" className="button slim" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>{asTable ? "As text" : "As a table"}</button>}
    >
      {trace.branches.length > 1 && <Branches trace={trace} chosen={branch} onChoose={choose} />}
      <Problem of={problem} />
      {!data && !problem && <Skeleton what="the tokens" />}
      {data && (asTable ? <TokenTable tokens={data} calls={trace.calls} /> : <TokenStrip key={`${branch} ${page}`} tokens={data} calls={trace.calls} />)}
      {data && data.total > PAGE && <Pager page={page} pages={Math.ceil(data.total / PAGE)} total={data.total} what="tokens" onPage={setPage} />}
    </Card>
  );
}

function Branches({ trace, chosen, onChoose }: { trace: Trace; chosen: number; onChoose: (branch: number) => void }) {
  return (
    <div className="stack tight">
      <p className="small muted">A fork, a sub-agent's conversation and a history that changed on the way are streams of their own. Each token is trained on once: in the stream of the call that sampled it.</p>
      <div className="segmented" role="group" aria-label="Stream">
        {trace.branches.map((branch, index) => <button key={index} type="button" aria-pressed={index === chosen} onClick={() => onChoose(index)}>Stream {index + 1} ({branch.tokens_count})</button>)}
      </div>
    </div>
  );
}

/** One evaluation: its mean with its confidence, how rewards are spread, every sample, and its log. */
import { useEffect, useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { api } from "../api/client";
import type { Evaluation, EvaluationDetail } from "../api/shapes";
import { useAction } from "../api/use-action";
import { useQuery } from "../api/use-query";
import { Badge, EvaluationBadge } from "../design/badge";
import { Card, Stat, Stats } from "../design/card";
import { ConfirmButton } from "../design/dialog";
import { Empty } from "../design/empty";
import { count, duration, ratio } from "../design/format";
import { Heading } from "../design/heading";
import { Notice, Problem } from "../design/notice";
import { Skeleton } from "../design/skeleton";
import { Tabs } from "../design/tabs";
import { useToast } from "../design/toast";
import { RewardSpread } from "./evaluation/reward-spread";
import { SamplesPanel } from "./evaluation/samples";

const REFRESH_MS = 3_000;
const LIVE = new Set(["PENDING", "RUNNING", "PROCESSING"]);
const COMPARED_MAX = 8;
const RESUMABLE = new Set(["FAILED", "CANCELLED", "TIMEOUT"]);

export function EvaluationPage() {
  const { id = "" } = useParams();
  const [search, setSearch] = useSearchParams();
  const [isLive, setLive] = useState(true);
  const query = useQuery("/api/v1/evaluations/{evaluation_id}", { path: { evaluation_id: id } }, isLive ? REFRESH_MS : 0);
  const found = query.data;
  // Figures are computed over all samples: one that has ended is not asked for again and again.
  const isOver = found !== undefined && !LIVE.has(found.status);
  useEffect(() => setLive(!isOver), [isOver]);
  if (!found) return <><Heading title="Evaluation" />{query.problem ? <Problem of={query.problem} /> : <Skeleton what="the evaluation" lines={6} />}</>;
  const statistics = found.statistics;
  const tabs = [
    { id: "samples", label: "Samples", panel: () => <SamplesPanel evaluationId={id} total={found.total_samples} /> },
    ...(found.is_hosted && found.is_own ? [{ id: "log", label: "Log", panel: () => <LogPanel evaluationId={id} isLive={LIVE.has(found.status)} /> }] : []),
    ...(found.is_own ? [{ id: "config", label: "Configuration", panel: () => <pre tabIndex={0}>{JSON.stringify(found.eval_config ?? found.metadata, null, 2)}</pre> }] : []),
  ];
  return (
    <>
      <Heading title={found.name || id} note={<Of evaluation={found} />}>
        <EvaluationBadge status={found.status} />
        {found.is_public && <Badge isPlain>{found.is_own ? "published" : "published by another team"}</Badge>}
        {found.is_own && <Publish evaluation={found} onDone={query.reload} />}
        {found.is_own && found.is_hosted && LIVE.has(found.status) && <Cancel evaluationId={id} onDone={query.reload} />}
        {found.group_id && <GroupLink groupId={found.group_id} />}
        {found.is_own && found.is_hosted && RESUMABLE.has(found.status) && <Resume evaluationId={id} onDone={query.reload} />}
      </Heading>
      {found.error_message && <Notice tone="bad" title="The evaluation failed.">{found.error_message}</Notice>}
      <Stats label="Result">
        <Stat label="Mean reward" value={ratio(statistics?.mean ?? found.avg_score, 3)} note={statistics?.ci_low == null ? "no interval below two examples" : `95 %: ${ratio(statistics.ci_low, 3)} to ${ratio(statistics.ci_high, 3)}`} />
        <Stat label="Spread" value={ratio(statistics?.std, 3)} note="standard deviation" />
        <Stat label="Samples" value={count(found.total_samples)} note={statistics ? <Rewarded statistics={statistics} /> : undefined} />
        {statistics && statistics.pass_rates.length > 0 && <Stat label="pass@k" value={statistics.pass_rates.map((rate) => `@${rate.k} ${ratio(rate.any_of)}`).join(" ")} note={`all of k: ${statistics.pass_rates.map((rate) => `@${rate.k} ${ratio(rate.all_of)}`).join(" ")}`} />}
        {statistics?.duration_mean_s != null && <Stat label="A rollout" value={`${ratio(statistics.duration_mean_s, 1)} s`} note={statistics.output_tokens_mean == null ? undefined : `${count(Math.round(statistics.input_tokens_mean ?? 0))} tokens in, ${count(Math.round(statistics.output_tokens_mean))} out`} />}
        <Stat label="Took" value={found.started_at && found.completed_at ? duration((Date.parse(found.completed_at) - Date.parse(found.started_at)) / 1000) : "—"} />
      </Stats>
      {statistics && statistics.bins.length > 1 && <RewardSpread bins={statistics.bins} />}
      <Tabs label="Parts of the evaluation" tabs={tabs} chosen={search.get("tab") ?? "samples"} onChoose={(tab) => setSearch({ tab }, { replace: true })} />
    </>
  );
}

function Rewarded({ statistics }: { statistics: NonNullable<EvaluationDetail["statistics"]> }) {
  const missing = Object.entries(statistics.missing);
  return (
    <>
      {count(statistics.rewards_count)} with a reward, {count(statistics.examples_count)} examples
      {missing.length > 0 && <>; missing: {missing.map(([reason, number]) => `${count(number)} ${reason}`).join(", ")}</>}
    </>
  );
}

function Of({ evaluation }: { evaluation: Evaluation }) {
  return (
    <>
      <code>{evaluation.model_name || "an unnamed model"}</code> on{" "}
      {evaluation.environment_names.map((name) => <Link key={name} to={`/environments/${name}`}>{name}</Link>)}
      {evaluation.run_id && <> · of <Link to={`/runs/${evaluation.run_id}`}>a run</Link></>}
    </>
  );
}

/** What was started together is there to be compared. */
function GroupLink({ groupId }: { groupId: string }) {
  const query = useQuery("/api/v1/evaluations", { query: { group_id: groupId, limit: COMPARED_MAX } });
  const ids = query.data?.evaluations.map((row) => row.evaluation_id).reverse() ?? [];
  return ids.length > 1 ? <Link className="button" to={`/evaluations/compare?ids=${ids.join(",")}`}>Compare its group</Link> : null;
}

/** What its team alone sees, everybody who may see the environment then sees, and the other way round. */
function Publish({ evaluation, onDone }: { evaluation: Evaluation; onDone: () => void }) {
  const say = useToast();
  const turn = useAction(
    () => api.put("/api/v1/evaluations/{evaluation_id}", { path: { evaluation_id: evaluation.evaluation_id }, body: { is_public: !evaluation.is_public } }),
    () => {
      say(evaluation.is_public ? "Only your team sees it now." : "It is published.");
      onDone();
    },
  );
  return evaluation.is_public ? (
    <ConfirmButton label="Take back" title="Show it to your team alone?" action={turn}>
      <p>It leaves the leaderboard that others see.</p>
    </ConfirmButton>
  ) : (
    <ConfirmButton label="Publish" title="Publish the evaluation?" action={turn}>
      <p>Everybody who may see its environment sees its samples, scores and costs, on the leaderboard too. Configuration, log and errors stay your team's.</p>
    </ConfirmButton>
  );
}

function Cancel({ evaluationId, onDone }: { evaluationId: string; onDone: () => void }) {
  const say = useToast();
  const cancel = useAction(
    () => api.patch("/api/v1/hosted-evaluations/{evaluation_id}/cancel", { path: { evaluation_id: evaluationId } }),
    (answer) => {
      say(answer.message);
      onDone();
    },
  );
  return (
    <ConfirmButton label="Cancel" confirm="Cancel the evaluation" title="Cancel the evaluation?" action={cancel} isDanger>
      <p>Samples that are there are kept. What was used until now is billed.</p>
    </ConfirmButton>
  );
}

function Resume({ evaluationId, onDone }: { evaluationId: string; onDone: () => void }) {
  const say = useToast();
  const resume = useAction(
    () => api.patch("/api/v1/hosted-evaluations/{evaluation_id}/resume", { path: { evaluation_id: evaluationId } }),
    () => {
      say("The evaluation goes on.");
      onDone();
    },
  );
  return (
    <ConfirmButton label="Resume" confirm="Go on" title="Go on with what is missing?" action={resume}>
      <p>Rollouts that are there are kept. Only what is made now is billed.</p>
    </ConfirmButton>
  );
}

function LogPanel({ evaluationId, isLive }: { evaluationId: string; isLive: boolean }) {
  const query = useQuery("/api/v1/hosted-evaluations/{evaluation_id}/logs", { path: { evaluation_id: evaluationId } }, isLive ? REFRESH_MS : 0);
  const lines = (query.data?.logs ?? "").split("\n").filter(Boolean).map((line) => JSON.parse(line) as { timestamp: string; level: string; component: string; message: string });
  return (
    <Card>
      <Problem of={query.problem} />
      {!query.data && !query.problem && <Skeleton what="the log" />}
      {query.data && lines.length === 0 && <Empty title="Nothing was logged yet." />}
      {lines.length > 0 && <pre className="logs" tabIndex={0}>{lines.map((line) => `${line.timestamp.slice(11, 19)}  ${line.component.padEnd(13)} ${line.message}`).join("\n")}</pre>}
    </Card>
  );
}

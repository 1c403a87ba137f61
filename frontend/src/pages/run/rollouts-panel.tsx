/** From a step to its groups, from a group to its rollouts, from there to one of them. The way stands in the address. */
import type { components } from "../../api/schema";
import type { RolloutGroup } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { Badge } from "../../design/badge";
import { Card } from "../../design/card";
import { Empty } from "../../design/empty";
import { Select } from "../../design/form";
import { Problem } from "../../design/notice";
import { Pager } from "../../design/pager";
import { Skeleton } from "../../design/skeleton";
import { GroupTable } from "./group-table";
import { RolloutTable, rolloutTone } from "./rollout-table";
import { RolloutView } from "./rollout-view";
import { StepPicker } from "./step-picker";

type Groups = components["schemas"]["GroupsAnswer"];

export interface Place {
  step?: number;
  tag: string;
  page: number;
  group?: string;
  rollout?: string;
}

const PAGE = 50;

export function RolloutsPanel({ runId, steps, place, onGo }: { runId: string; steps: number[]; place: Place; onGo: (change: Partial<Place>) => void }) {
  const step = place.step ?? steps.at(-1);
  if (step === undefined) return <Empty title="The first rollouts are on their way."><p>They are listed here once the first step is done.</p></Empty>;
  if (place.rollout) return <RolloutView runId={runId} rolloutId={place.rollout} onBack={() => onGo({ rollout: undefined })} />;
  return <StepRollouts runId={runId} step={step} steps={steps} place={place} onGo={onGo} />;
}

const tagName = (tag: string) => (tag === "train" ? "training" : tag.startsWith("eval/") ? `evaluation: ${tag.slice(5).replace(/ \(eval\)$/, "")}` : `left over by attempt ${tag.replace("rest-", "")}`);

function StepRollouts({ runId, step, steps, place, onGo }: { runId: string; step: number; steps: number[]; place: Place; onGo: (change: Partial<Place>) => void }) {
  const query = { step, tag: place.tag, offset: (place.page - 1) * PAGE, limit: PAGE };
  const { data, problem, isStale } = useQuery("/api/v1/rft/runs/{run_id}/groups", { path: { run_id: runId }, query });
  const tags: [string, string][] = (data?.tags.length ? data.tags : [{ tag: place.tag, rollouts_count: 0 }]).map((one) => [one.tag, `${tagName(one.tag)} (${one.rollouts_count})`]);
  return (
    <Card
      title={`Rollouts of step ${step}`}
      note="Rollouts of one task on one policy version are a group: each is compared with the others of its group."
      actions={<StepPicker step={step} steps={steps} takesAny onStep={(chosen) => onGo({ step: chosen, page: 1, group: undefined })} />}
    >
      <div className="table-tools">
        <Select label="Which" options={tags} value={place.tag} onChange={(event) => onGo({ tag: event.target.value, page: 1, group: undefined })} />
        {data && <StateCounts data={data} />}
      </div>
      <Problem of={problem} />
      {!data && !problem && <Skeleton what="rollouts" />}
      {data && <CommonErrors data={data} />}
      {data && data.groups.length === 0 && <Empty title={`Step ${step} has no ${tagName(place.tag)} rollouts.`} />}
      {data && data.groups.length > 0 && (
        <>
          <GroupTable groups={data.groups} chosen={place.group} isStale={isStale} onChoose={(group) => onGo({ group })} />
          <ChosenGroup groups={data.groups} chosen={place.group} onOpen={(rollout) => onGo({ rollout })} />
          <Pager page={place.page} pages={Math.ceil(data.groups_count / PAGE)} total={data.groups_count} what="groups" onPage={(page) => onGo({ page, group: undefined })} />
        </>
      )}
    </Card>
  );
}

function StateCounts({ data }: { data: Groups }) {
  return (
    <div className="row state-counts">
      {Object.entries(data.states).map(([state, count]) => <Badge key={state} tone={rolloutTone(state)} isPlain>{count} {state}</Badge>)}
    </div>
  );
}

function CommonErrors({ data }: { data: Groups }) {
  if (data.errors.length === 0) return null;
  return (
    <details className="errors" open={Boolean(data.states.failed)}>
      <summary>What went wrong most often</summary>
      <ul>{data.errors.map((one) => <li key={one.error}><b>{one.count} ×</b> <code>{one.error}</code></li>)}</ul>
    </details>
  );
}

function ChosenGroup({ groups, chosen, onOpen }: { groups: RolloutGroup[]; chosen: string | undefined; onOpen: (rollout: string) => void }) {
  const group = groups.find((one) => one.group_id === chosen);
  return group ? <RolloutTable group={group} onOpen={onOpen} /> : <p className="muted small">Choose a group to see its rollouts.</p>;
}

/** The groups of a step: task, rewards as a strip of dots, spread, staleness. */
import type { RolloutGroup } from "../../api/shapes";
import { type Column, Table } from "../../design/table";
import { ratio } from "../../design/format";
import { taskName } from "./task-name";

const WIDTH = 120;
const EDGE = 6;

/** Each rollout's reward between the lowest and the highest of the page; a failed one has no dot. */
function RewardStrip({ group, low, high }: { group: RolloutGroup; low: number; high: number }) {
  const at = (reward: number) => EDGE + ((reward - low) / (high - low || 1)) * (WIDTH - 2 * EDGE);
  const rewards = group.rollouts.flatMap((rollout) => (rollout.reward === null ? [] : [rollout.reward]));
  return (
    <svg className="reward-strip" width={WIDTH} height="16" viewBox={`0 0 ${WIDTH} 16`} role="img" aria-label={`rewards ${rewards.map((reward) => ratio(reward)).join(", ")}`}>
      <line x1={EDGE} x2={WIDTH - EDGE} y1="8" y2="8" />
      {rewards.map((reward, index) => <circle key={index} cx={at(reward)} cy={8} r="4" />)}
    </svg>
  );
}

export function GroupTable({ groups, chosen, isStale, onChoose }: { groups: RolloutGroup[]; chosen: string | undefined; isStale: boolean; onChoose: (id: string) => void }) {
  const rewards = groups.flatMap((group) => [group.reward_min ?? 0, group.reward_max ?? 0]);
  const [low, high] = [Math.min(0, ...rewards), Math.max(...rewards)];
  const columns: Column<RolloutGroup>[] = [
    {
      name: "Task",
      sortBy: (group) => group.task,
      cell: (group) => (
        <button type="button" className="link" title={group.task_key} aria-pressed={group.group_id === chosen} onClick={() => onChoose(group.group_id)}>
          {taskName(group)}
        </button>
      ),
    },
    { name: "Environment", sortBy: (group) => group.environment, cell: (group) => <span className="muted">{group.environment}</span> },
    { name: "Rewards", cell: (group) => <RewardStrip group={group} low={low} high={high} /> },
    { name: "Mean", kind: "number", sortBy: (group) => group.reward_mean, cell: (group) => ratio(group.reward_mean, 3) },
    { name: "Spread", kind: "number", sortBy: (group) => group.reward_std, cell: (group) => ratio(group.reward_std, 3) },
    { name: "Trained", kind: "number", sortBy: (group) => group.trained_count, cell: (group) => `${group.trained_count} / ${group.rollouts.length}` },
    { name: "Version", kind: "number", sortBy: (group) => group.policy_version, cell: (group) => group.policy_version },
    { name: "Stale", kind: "number", sortBy: (group) => group.staleness, cell: (group) => group.staleness },
  ];
  return <Table caption="Groups" columns={columns} rows={groups} rowKey={(group) => group.group_id} isStale={isStale} />;
}

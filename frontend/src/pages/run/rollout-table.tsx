/** The rollouts of one group beside one another. */
import { useEffect, useRef } from "react";
import type { components } from "../../api/schema";
import type { RolloutGroup } from "../../api/shapes";
import { Badge, type Tone } from "../../design/badge";
import { type Column, Table } from "../../design/table";
import { count, ratio } from "../../design/format";
import { taskName } from "./task-name";

type Rollout = components["schemas"]["RolloutRow"];

const WAITING = new Set(["infrastructure", "stale", "cancelled", "filtered"]);
export const rolloutTone = (state: string): Tone => (state === "ok" ? "good" : WAITING.has(state) ? "wait" : "bad");

export function RolloutTable({ group, onOpen }: { group: RolloutGroup; onOpen: (id: string) => void }) {
  const place = useRef<HTMLElement>(null);
  // It stands below the groups: whoever chose one shall see it.
  useEffect(() => {
    place.current?.scrollIntoView({ block: "nearest" });
  }, [group.group_id]);
  const columns: Column<Rollout>[] = [
    {
      name: "Answer",
      cell: (row) => (
        <>
          <button type="button" className="link answer" onClick={() => onOpen(row.id)}>{row.preview || "(it said nothing)"}</button>
          {row.error && <div className="small problem-line">{row.error}</div>}
        </>
      ),
    },
    { name: "State", sortBy: (row) => row.state, cell: (row) => <Badge tone={rolloutTone(row.state)} isPlain>{row.state}</Badge> },
    { name: "Reward", kind: "number", sortBy: (row) => row.reward, cell: (row) => ratio(row.reward, 3) },
    { name: "Advantage", kind: "number", sortBy: (row) => row.advantage, cell: (row) => ratio(row.advantage, 3) },
    { name: "Turns", kind: "number", sortBy: (row) => row.turns, cell: (row) => row.turns },
    { name: "Tokens", kind: "number", sortBy: (row) => row.output_tokens, cell: (row) => <span className="nowrap">{count(row.input_tokens)} → {count(row.output_tokens)}</span> },
    { name: "Time", kind: "number", sortBy: (row) => row.duration_s, cell: (row) => <span className="nowrap">{ratio(row.duration_s)} s</span> },
  ];
  return (
    <section ref={place} className="stack tight" aria-label="Chosen group">
      <h3>{taskName(group)} <span className="muted">· {group.environment} · version {group.policy_version}</span></h3>
      <Table caption={`Rollouts of ${taskName(group)}`} columns={columns} rows={group.rollouts} rowKey={(row) => row.id} />
    </section>
  );
}

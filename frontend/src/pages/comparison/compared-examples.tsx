/** Examples of a comparison, the worst regression first; each opens to the difference of the answers. */
import { useState } from "react";
import { useQuery } from "../../api/use-query";
import { Badge } from "../../design/badge";
import { Card } from "../../design/card";
import { Empty } from "../../design/empty";
import { Select } from "../../design/form";
import { ratio } from "../../design/format";
import { Problem } from "../../design/notice";
import { CursorPager } from "../../design/pager";
import { Skeleton } from "../../design/skeleton";
import type { ComparedExample } from "../../api/shapes";
import { Answers } from "./answers";

const PAGE = 25;
const VERDICTS = ["regressed", "improved", "same", "missing"] as const;
type Verdict = (typeof VERDICTS)[number];
const ORDERS = [["regression", "the worst regression"], ["improvement", "the best improvement"]] as const;
type Order = "regression" | "improvement";
const TONES = { regressed: "bad", improved: "good", same: "", missing: "wait" } as const;

export function ComparedExamples({ ids, models }: { ids: string; models: string[] }) {
  const [verdict, setVerdict] = useState("");
  const [order, setOrder] = useState<Order>("regression");
  const [trail, setTrail] = useState<string[]>([]);
  const query = useQuery("/api/v1/evaluations/compare/examples", { query: { ids, order, verdict: (verdict || undefined) as Verdict | undefined, limit: PAGE, cursor: trail.at(-1) } });
  const choose = (set: (value: string) => void) => (event: { currentTarget: { value: string } }) => {
    set(event.currentTarget.value);
    setTrail([]);
  };
  const rows = query.data?.items ?? [];
  return (
    <Card title="Examples" note={query.data && `${query.data.total} of them`}>
      <div className="table-tools">
        <Select label="Verdict" value={verdict} onChange={choose(setVerdict)} options={[["", "all"], ...VERDICTS.map((name) => [name, name] as const)]} />
        <Select label="First" value={order} onChange={choose((value) => setOrder(value as Order))} options={ORDERS} />
      </div>
      <Problem of={query.problem} />
      {!query.data && !query.problem && <Skeleton what="examples" />}
      {query.data && rows.length === 0 && <Empty title="No such example." />}
      <ul className="samples">{rows.map((row) => <li key={row.example}><Example ids={ids} row={row} models={models} /></li>)}</ul>
      <CursorPager trail={trail} next={query.data?.next_cursor} what="examples" onTrail={setTrail} />
    </Card>
  );
}

function Example({ ids, row, models }: { ids: string; row: ComparedExample; models: string[] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="sample compared">
        <Badge tone={TONES[row.verdict]} isPlain>{row.change === null ? row.verdict : `${row.change > 0 ? "+" : ""}${ratio(row.change)}`}</Badge>
        <span className="mono">{row.example}</span>
        <span className="muted">{row.means.map((mean) => ratio(mean)).join(" → ")}</span>
        <span className="muted truncate wide">{row.title}</span>
      </summary>
      {isOpen && <Answers ids={ids} example={row.example} models={models} />}
    </details>
  );
}

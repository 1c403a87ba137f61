/** Evaluations of one environment side by side: quality against dollars, a paired test, and every example. One address to share. */
import { useEffect, useState } from "react";
import { Link, useSearchParams } from "react-router";
import type { Comparison } from "../api/shapes";
import { useQuery } from "../api/use-query";
import { Card } from "../design/card";
import { Empty } from "../design/empty";
import { count, ratio } from "../design/format";
import { Heading } from "../design/heading";
import { Notice, Problem } from "../design/notice";
import { Skeleton } from "../design/skeleton";
import { ComparedExamples } from "./comparison/compared-examples";
import { Frontier } from "./comparison/frontier";
import { QualityTable } from "./comparison/quality-table";
import "./comparison/comparison.css";

const REFRESH_MS = 10_000;

export function ComparisonPage() {
  const [search] = useSearchParams();
  const ids = search.get("ids") ?? "";
  const [isLive, setLive] = useState(true);
  const query = useQuery("/api/v1/evaluations/compare", ids ? { query: { ids } } : null, isLive ? REFRESH_MS : 0);
  const isOver = query.data !== undefined && query.data.evaluations.every((row) => row.evaluation.completed_at !== null);
  useEffect(() => setLive(!isOver), [isOver]);
  if (!ids) return <><Heading title="Comparison" /><Empty title="Choose two evaluations or more."><Link to="/evaluations">Go to the evaluations</Link></Empty></>;
  const found = query.data;
  if (!found) return <><Heading title="Comparison" />{query.problem ? <Problem of={query.problem} /> : <Skeleton what="the comparison" lines={6} />}</>;
  const models = found.evaluations.map((row) => row.evaluation.model_name || row.evaluation.name);
  return (
    <>
      <Heading title="Comparison" note={<>Against <b>{models[0]}</b>, example by example.</>} />
      {found.notes.map((note) => <Notice key={note} tone="wait" title="Before you trust a difference">{note}</Notice>)}
      <Card title="Quality against dollars" note="★ marks what no other evaluation beats: at least as good, and cheaper or faster.">
        <QualityTable rows={found.evaluations} />
        <Frontier rows={found.evaluations} />
      </Card>
      {found.pairs.length > 0 && <Verdicts comparison={found} models={models} />}
      {found.evaluations.length > 1 && <ComparedExamples ids={ids} models={models} />}
    </>
  );
}

function Verdicts({ comparison, models }: { comparison: Comparison; models: string[] }) {
  const name = (id: string) => models[comparison.evaluations.findIndex((row) => row.evaluation.evaluation_id === id)];
  return (
    <Card title="Difference" note="Means of the examples that both have, paired t-test; the interval is at 95 %.">
      <ul className="stack">
        {comparison.pairs.map((pair) => (
          <li key={pair.evaluation_id}>
            <b>{name(pair.evaluation_id)}</b>: {pair.difference >= 0 ? "+" : ""}{ratio(pair.difference, 3)}
            {pair.ci_low != null && <> ({ratio(pair.ci_low, 3)} to {ratio(pair.ci_high, 3)}, p {pair.p_value != null && pair.p_value < 0.0001 ? "< 0.0001" : `= ${ratio(pair.p_value, 4)}`})</>}
            <span className="muted"> · {count(pair.examples)} examples: {count(pair.improved)} improved, {count(pair.regressed)} regressed, {count(pair.same)} the same</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

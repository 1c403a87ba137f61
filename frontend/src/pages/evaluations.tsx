/** Evaluations of the team: hosted ones and those pushed from elsewhere. */
import { useState } from "react";
import { Link } from "react-router";
import type { Evaluation } from "../api/shapes";
import { useQuery } from "../api/use-query";
import { Badge, EvaluationBadge } from "../design/badge";
import { Card } from "../design/card";
import { Empty } from "../design/empty";
import { Field } from "../design/form";
import { count, ratio } from "../design/format";
import { Heading } from "../design/heading";
import { Problem } from "../design/notice";
import { Pager } from "../design/pager";
import { Skeleton } from "../design/skeleton";
import { type Column, Table } from "../design/table";
import { Age } from "../design/time";

const PAGE = 50;
const REFRESH_MS = 5_000;

const COMPARED_MAX = 8;

const columns = (chosen: string[], toggle: (id: string) => void): Column<Evaluation>[] => [
  {
    name: "Compare",
    cell: (row) => {
      const isChosen = chosen.includes(row.evaluation_id);
      return <input type="checkbox" aria-label={`Compare ${row.name || row.evaluation_id}`} checked={isChosen} disabled={!isChosen && chosen.length >= COMPARED_MAX} onChange={() => toggle(row.evaluation_id)} />;
    },
  },
  {
    name: "Evaluation",
    sortBy: (row) => row.name,
    cell: (row) => (
      <>
        <Link to={`/evaluations/${row.evaluation_id}`}>{row.name || row.evaluation_id}</Link>
        <div className="muted small truncate">{row.environment_names.join(", ")}</div>
      </>
    ),
  },
  { name: "State", sortBy: (row) => row.status, cell: (row) => <span className="row"><EvaluationBadge status={row.status} />{!row.is_hosted && <Badge isPlain>pushed</Badge>}</span> },
  { name: "Model", sortBy: (row) => row.model_name, cell: (row) => <span className="truncate" title={row.model_name}>{row.model_name || "—"}</span> },
  { name: "Mean reward", kind: "number", sortBy: (row) => row.avg_score, cell: (row) => ratio(row.avg_score, 3) },
  { name: "Samples", kind: "number", sortBy: (row) => row.total_samples, cell: (row) => count(row.total_samples) },
  { name: "Age", sortBy: (row) => row.created_at, cell: (row) => <Age of={row.created_at} /> },
];

export function EvaluationsPage() {
  const [environment, setEnvironment] = useState("");
  const [page, setPage] = useState(1);
  const [chosen, setChosen] = useState<string[]>([]);
  const toggle = (id: string) => setChosen((known) => (known.includes(id) ? known.filter((one) => one !== id) : [...known, id]));
  const query = useQuery("/api/v1/evaluations", { query: { limit: PAGE, skip: (page - 1) * PAGE, environment_name: environment.trim() || undefined } }, REFRESH_MS);
  const rows = query.data?.evaluations ?? [];
  return (
    <>
      <Heading title="Evaluations" note="How well a model does on an environment, without training it.">
        {chosen.length > 1 && <Link className="button primary" to={`/evaluations/compare?ids=${chosen.join(",")}`}>Compare {chosen.length}</Link>}
      </Heading>
      <Card>
        {(rows.length > 0 || environment) && <div className="table-tools"><Field label="Environment" type="search" placeholder="owner/name" className="wide" value={environment} onChange={(event) => { setEnvironment(event.currentTarget.value); setPage(1); }} /></div>}
        <Problem of={query.problem} />
        {!query.data && !query.problem && <Skeleton what="evaluations" />}
        {query.data && rows.length === 0 && (environment ? <Empty title={`No evaluation of “${environment}”. Give the whole name: owner/name.`} /> : <Empty title="No evaluation yet." command="prime eval run digit-sum -m tiny -n 64" />)}
        {rows.length > 0 && <Table caption="Evaluations" columns={columns(chosen, toggle)} rows={rows} rowKey={(row) => row.evaluation_id} isStale={query.isStale} />}
        {rows.length > 0 && <Pager page={page} pages={Math.ceil((query.data?.total ?? 0) / PAGE)} total={query.data?.total ?? 0} what="evaluations" onPage={setPage} />}
      </Card>
    </>
  );
}

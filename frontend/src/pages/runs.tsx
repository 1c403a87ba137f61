/** All runs of the team, newest first, found by name, state, model and environment. The filters stand in the address. */
import { useSearchParams } from "react-router";
import type { RequestOf } from "../api/client";
import type { BaseModel } from "../api/shapes";
import { useQuery } from "../api/use-query";
import { Card } from "../design/card";
import { Empty } from "../design/empty";
import { Field, Select } from "../design/form";
import { Heading } from "../design/heading";
import { Problem } from "../design/notice";
import { Pager } from "../design/pager";
import { Skeleton } from "../design/skeleton";
import { RunTable } from "./run-table";

const PAGE = 50;
const REFRESH_MS = 5_000;
type Status = NonNullable<NonNullable<RequestOf<"/api/v1/rft/runs", "get">["query"]>["status"]>;
const STATES: readonly Status[] = ["QUEUED", "PENDING", "RUNNING", "PAUSING", "PAUSED", "COMPLETED", "FAILED", "STOPPED"];
const FILTERS = ["search", "status", "model", "environment"] as const;

const sentence = (word: string) => word[0] + word.slice(1).toLowerCase();

export function RunsPage() {
  const [address, setAddress] = useSearchParams();
  const value = (name: string) => address.get(name) ?? "";
  const page = Number(value("page")) || 1;
  const status = STATES.find((one) => one === value("status"));
  const query = useQuery(
    "/api/v1/rft/runs",
    { query: { limit: PAGE, page, status, search: value("search"), model: value("model"), environment: value("environment") } },
    REFRESH_MS,
  );
  const models = useQuery("/api/v1/rft/models", {});
  const choose = (changes: Record<string, string>) => {
    const next = { ...Object.fromEntries(address), page: "", ...changes };
    setAddress(Object.entries(next).filter(([, text]) => text !== ""), { replace: true });
  };
  const isFiltered = FILTERS.some((name) => value(name));
  const rows = query.data?.runs ?? [];
  return (
    <>
      <Heading title="Runs" note="Every run trains its own adapter; all of them share one copy of the base model." />
      <Card>
        {(isFiltered || rows.length > 0) && <Filters value={value} choose={choose} models={models.data?.models ?? []} />}
        <Problem of={query.problem} />
        {!query.data && !query.problem && <Skeleton what="runs" />}
        {query.data && rows.length === 0 && (isFiltered ? <Empty title="No run is like that."><button type="button" className="button" onClick={() => setAddress([])}>Show all runs</button></Empty> : <Empty title="No run yet." command="prime train examples/configs/digit_sum.toml --follow" />)}
        {rows.length > 0 && <RunTable runs={rows} isStale={query.isStale} />}
        {query.data && rows.length > 0 && <Pager page={page} pages={query.data.total_pages} total={query.data.total} what="runs" onPage={(next) => choose({ page: String(next) })} />}
      </Card>
    </>
  );
}

function Filters({ value, choose, models }: { value: (name: string) => string; choose: (changes: Record<string, string>) => void; models: BaseModel[] }) {
  const states = [["", "Any state"], ...STATES.map((state) => [state, state === "PENDING" ? "Starting" : sentence(state)] as const)] as const;
  const names = [["", "Any model"], ...models.map((model) => [model.name, model.displayName || model.name] as const)] as const;
  return (
    <div className="table-tools">
      <Field label="Name" type="search" className="wide" value={value("search")} onChange={(event) => choose({ search: event.currentTarget.value })} />
      <Field label="Environment" type="search" placeholder="owner/name" value={value("environment")} onChange={(event) => choose({ environment: event.currentTarget.value.trim() })} />
      <Select label="State" options={states} value={value("status")} onChange={(event) => choose({ status: event.currentTarget.value })} />
      <Select label="Base model" options={names} value={value("model")} onChange={(event) => choose({ model: event.currentTarget.value })} />
    </div>
  );
}

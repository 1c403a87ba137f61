/** What a run has cost so far by meter, and what the rest will cost if it goes on as it did. */
import { useEffect, useRef } from "react";
import type { MeterRow, Run } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { Card, Stat, Stats } from "../../design/card";
import { Empty } from "../../design/empty";
import { count, microDollars, words } from "../../design/format";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { HAS_ENDED, isElsewhere } from "./use-run";

const COLUMNS: Column<MeterRow>[] = [
  { name: "Meter", sortBy: (row) => row.meter, cell: (row) => words(row.meter) },
  { name: "Quantity", kind: "number", sortBy: (row) => row.quantity, cell: (row) => count(row.quantity) },
  { name: "Price per million", kind: "number", sortBy: (row) => Number(row.usd_per_million), cell: (row) => `$${row.usd_per_million}` },
  { name: "Amount", kind: "number", sortBy: (row) => row.amount_microusd, cell: (row) => microDollars(row.amount_microusd) },
];

export function CostPanel({ run, pulse }: { run: Run; pulse: number }) {
  const { data, problem, reload } = useQuery("/api/v1/billing/runs/{run_id}/usage", { path: { run_id: run.id } }, HAS_ENDED.has(run.status) ? 0 : 10_000);
  const seen = useRef(pulse);
  useEffect(() => {
    if (pulse !== seen.current) reload();
    seen.current = pulse;
  }, [pulse, reload]);
  if (!data) return problem ? <Problem of={problem} /> : <Skeleton what="the bill" />;
  const perStep = run.step > 0 ? data.total_cost_microusd / run.step : null;
  const left = HAS_ENDED.has(run.status) || isElsewhere(run) ? 0 : run.maxSteps - run.step;
  return (
    <>
      <Stats label="Cost">
        <Stat label="So far" value={microDollars(data.total_cost_microusd)} note={`${count(data.total_tokens)} tokens`} />
        <Stat label="A step" value={perStep === null ? "—" : microDollars(perStep)} note="on average" />
        <Stat label="Still to come, at that rate" value={perStep === null ? "—" : microDollars(perStep * left)} note={left ? `${left} steps` : "nothing"} />
      </Stats>
      <Card title="By meter" note="Everything that this run caused. Failures of ours are free; what was dropped as too old is, too.">
        <Problem of={problem} />
        {data.meters.length === 0 ? <Empty title="Nothing is charged yet." /> : <Table caption="Cost by meter" columns={COLUMNS} rows={data.meters} rowKey={(row) => `${row.meter} ${row.price_version}`} />}
      </Card>
    </>
  );
}

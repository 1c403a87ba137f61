/** The curves of a run under one crosshair: reward with its band and evaluations first, then everything that explains it. */
import { useCallback, useMemo, useState } from "react";
import { useQuery } from "../../api/use-query";
import type { RunEvent } from "../../api/use-run-events";
import { Chart } from "../../design/chart";
import type { ChartMark } from "../../design/chart-plot";
import { Empty } from "../../design/empty";
import { Segmented } from "../../design/form";
import { Skeleton } from "../../design/skeleton";
import { type BandKind, Plotter, axisOf, isDrawn, rewardSpec, sectionsOf } from "./chart-specs";
import type { Curves } from "./curves-model";
import { Happenings } from "./happenings";
import { StepCard } from "./step-card";

const BANDS = [["sigma", "mean ± σ"], ["groups", "group means"]] as const;

interface Window {
  from: number;
  to: number;
}

export function CurvesPanel({ runId, curves, happenings, onOpen }: { runId: string; curves: Curves | undefined; happenings: RunEvent[]; onOpen: (step: number) => void }) {
  const [range, setRange] = useState<Window>();
  const shown = useWindow(runId, curves, range);
  const evaluations = useMemo(() => happenings.filter((event) => event.kind === "eval" && inside(event.step, range)), [happenings, range]);
  if (!shown) return <Skeleton what="the curves" lines={8} />;
  if (shown.steps.length === 0 && evaluations.length === 0) {
    return (
      <>
        <Empty title="No step is done yet."><p>The first point stands here as soon as the trainer has made a step.</p></Empty>
        <Happenings events={happenings} />
      </>
    );
  }
  return (
    <>
      <Charts curves={shown} evaluations={evaluations} happenings={happenings} range={range} onRange={setRange} onOpen={onOpen} />
      <Happenings events={happenings} />
    </>
  );
}

const inside = (step: number | null, range: Window | undefined) => !range || (step !== null && step >= range.from && step <= range.to);

/** The steps of a window. Where the server has taken steps together, it is asked for that window in full. */
function useWindow(runId: string, curves: Curves | undefined, range: Window | undefined): Curves | undefined {
  const isThinned = (curves?.bucket_steps ?? 1) > 1;
  const query = range && isThinned ? { path: { run_id: runId }, query: { min_step: range.from, max_step: range.to } } : null;
  const detail = useQuery("/api/v1/rft/runs/{run_id}/curves", query);
  return useMemo(() => {
    if (!curves || !range) return curves;
    if (isThinned) return detail.data ?? curves;
    const kept = curves.steps.map((step) => inside(step, range));
    const cut = <T,>(values: T[]) => values.filter((_, index) => kept[index]);
    return { ...curves, steps: cut(curves.steps), series: Object.fromEntries(Object.entries(curves.series).map(([name, values]) => [name, cut(values)])) };
  }, [curves, range, isThinned, detail.data]);
}

interface ChartsProps {
  curves: Curves;
  evaluations: RunEvent[];
  happenings: RunEvent[];
  range: Window | undefined;
  onRange: (range: Window | undefined) => void;
  onOpen: (step: number) => void;
}

function Charts({ curves, evaluations, happenings, range, onRange, onOpen }: ChartsProps) {
  const [hovered, setHovered] = useState<number | null>(null);
  const [chosen, setChosen] = useState<number>();
  const [band, setBand] = useState<BandKind>("sigma");
  const [showsBranches, setShowsBranches] = useState(false);
  const axis = useMemo(() => axisOf(showsBranches ? curves : { ...curves, branches: [] }, evaluations), [curves, evaluations, showsBranches]);
  const plotter = useMemo(() => new Plotter(curves, axis), [curves, axis]);
  const reward = useMemo(() => rewardSpec(plotter, evaluations, band, showsBranches), [plotter, evaluations, band, showsBranches]);
  const sections = useMemo(() => sectionsOf(plotter), [plotter]);
  const marks = useMemo(() => marksOf(curves, happenings), [curves, happenings]);
  const select = useCallback((from: number, to: number) => onRange({ from, to }), [onRange]);
  const step = chosen ?? curves.steps.at(-1);
  const common = { steps: axis, hovered, onHover: setHovered, chosenStep: chosen, onPick: setChosen, onSelect: select, marks };
  return (
    <>
      <div className="between chart-tools">
        {isDrawn(reward) && <Segmented label="Band around the reward" options={BANDS} chosen={band} onChoose={setBand} />}
        {curves.branches.length > 0 && (
          <label className="check">
            <input type="checkbox" checked={showsBranches} onChange={(event) => setShowsBranches(event.target.checked)} />
            Show {curves.branches.length === 1 ? "the folded branch" : `${curves.branches.length} folded branches`}
          </label>
        )}
        <span className="row small muted">
          {curves.bucket_steps > 1 && `Each point stands for ${curves.bucket_steps} steps; drag over a chart to see single ones. `}
          {range ? <button type="button" className="button slim" onClick={() => onRange(undefined)}>Steps {range.from}–{range.to}: show all</button> : "Drag to zoom, click to choose a step."}
        </span>
      </div>
      {isDrawn(reward) && <Chart {...reward} {...common} height={260} />}
      {step !== undefined && <StepCard curves={curves} step={step} onStep={setChosen} onOpen={onOpen} />}
      {sections.map((section) => (
        <section key={section.title} className="stack" aria-label={section.title}>
          <h2>{section.title}</h2>
          <div className="charts">{section.charts.map((spec) => <Chart key={spec.title} {...spec} {...common} />)}</div>
        </section>
      ))}
    </>
  );
}

/** Where another attempt went on, and where something failed. What it was stands in words below the charts. */
function marksOf(curves: Curves, happenings: RunEvent[]): ChartMark[] {
  const resumed: ChartMark[] = curves.attempts.slice(1).map((span) => ({ step: span.first_step, tone: "attempt" }));
  const incidents = happenings.filter((event) => event.kind === "incident").map((event): ChartMark => ({ step: event.step ?? stepBefore(curves, event.at), tone: "incident" }));
  return [...resumed, ...incidents];
}

/** The last step of the attempt that was at work at a moment. */
function stepBefore(curves: Curves, at: string): number {
  return curves.attempts.findLast((span) => span.started_at <= at)?.last_step ?? 0;
}

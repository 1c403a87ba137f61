/**
 * One chart over steps: lines, a band or a stack, with a key that shows the values under the common crosshair and a table of the
 * same numbers. Redraws in place: a live run adds a point a second.
 */
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "./chart.css";
import { type ChartMark, type Drawing, columns, plotOptions } from "./chart-plot";
import { ChartKey, ChartTable, spoken } from "./chart-words";
import { THEME_CHANGED } from "./theme";

export interface ChartProps extends Drawing {
  title: string;
  note?: string;
  steps: number[];
  /** What is under the crosshair of any chart of the page: an index into `steps`. */
  hovered: number | null;
  onHover: (index: number | null) => void;
  chosenStep?: number;
  onPick: (step: number) => void;
  onSelect: (from: number, to: number) => void;
  marks: ChartMark[];
  height?: number;
}

const SYNC_KEY = "steps";

export function Chart(props: ChartProps) {
  const { title, note, steps, hovered, height = 190, lines } = props;
  const hasPoints = lines.some((line) => line.values.some((value) => value !== null));
  return (
    <figure className="chart" aria-label={title}>
      <figcaption className="chart-head">
        <h3>{title}</h3>
        {note && <span className="muted small">{note}</span>}
      </figcaption>
      {hasPoints ? <Plot {...props} height={height} /> : <p className="chart-empty">No points yet.</p>}
      {hasPoints && <ChartKey drawing={props} at={hovered} />}
      {hasPoints && <ChartTable title={title} steps={steps} drawing={props} />}
    </figure>
  );
}

function Plot(props: ChartProps & { height: number }) {
  const { title, steps, lines, band, isStacked, height, marks, chosenStep } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [turn, setTurn] = useState(0);
  const shape = `${lines.map((line) => `${line.label}${line.colour}${line.isDashed}`).join()} ${band?.label} ${isStacked}`;

  // Colours are read when the chart is made.
  useEffect(() => {
    const remake = () => setTurn((count) => count + 1);
    addEventListener(THEME_CHANGED, remake);
    return () => removeEventListener(THEME_CHANGED, remake);
  }, []);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const now = () => latest.current;
    const stepAt = (index: number) => now().steps[index];
    const hooks = {
      onHover: (index: number | null) => now().onHover(index),
      onPick: (index: number) => {
        const step = stepAt(index);
        if (step !== undefined) now().onPick(step);
      },
      onSelect: (from: number, to: number) => now().onSelect(from, to),
      marks: () => now().marks,
      chosen: () => now().chosenStep,
    };
    const made = new uPlot(plotOptions(element.clientWidth, height, now(), SYNC_KEY, hooks), columns(now().steps, now()), element);
    plot.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    watcher.observe(element);
    return () => {
      watcher.disconnect();
      made.destroy();
      plot.current = null;
    };
    // The chart is made again only when its set of lines or its colours change; data flows through the effect below.
  }, [shape, turn, height]);

  useEffect(() => {
    plot.current?.setData(columns(steps, { lines, band, isStacked }));
  }, [steps, lines, band, isStacked]);
  useEffect(() => {
    plot.current?.redraw(false);
  }, [marks, chosenStep]);

  return <div ref={box} className="chart-plot" role="img" aria-label={spoken(title, steps, props)} />;
}

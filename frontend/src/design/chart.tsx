/** One line chart with an optional band, on uPlot. Redraws in place: a live run adds a point a second. */
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Series {
  label: string;
  values: (number | null)[];
  colour?: "--accent" | "--graft" | "--ink-soft";
  dashed?: boolean;
}

const HEIGHT = 260;

function colourOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function options(width: number, series: Series[], range: [number, number] | undefined): uPlot.Options {
  const axis = { stroke: colourOf("--ink-soft"), grid: { stroke: colourOf("--line"), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    scales: { x: { time: false }, y: range ? { range } : {} },
    // Steps are whole: no tick between two of them.
    axes: [{ ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] }, { ...axis, size: 52 }],
    cursor: { points: { size: 6 } },
    series: [
      { label: "step" },
      ...series.map(({ label, colour = "--accent", dashed }) => ({
        label,
        stroke: colourOf(colour),
        width: dashed ? 1 : 2,
        dash: dashed ? [4, 4] : undefined,
        spanGaps: true,
        value: (_: uPlot, value: number | null) => (value === null ? "—" : value.toFixed(3)),
      })),
    ],
  };
}

export function Chart({ title, steps, series, range }: { title: string; steps: number[]; series: Series[]; range?: [number, number] }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shape = series.map((one) => one.label).join();

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const chart = new uPlot(options(element.clientWidth, series, range), [[], ...series.map(() => [])], element);
    plot.current = chart;
    const watcher = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT }));
    watcher.observe(element);
    return () => {
      watcher.disconnect();
      chart.destroy();
      plot.current = null;
    };
    // The chart is rebuilt only when its set of lines changes; data flows through the effect below.
  }, [shape]);

  useEffect(() => {
    plot.current?.setData([steps, ...series.map((one) => one.values)] as uPlot.AlignedData);
  }, [steps, series]);

  const last = series[0]?.values.at(-1);
  return (
    <figure className="card">
      <figcaption className="row">
        <h3>{title}</h3>
        <span className="muted small">{typeof last === "number" ? `now ${last.toFixed(3)}` : "no points yet"}</span>
      </figcaption>
      <div ref={box} className="chart" role="img" aria-label={`${title} over ${steps.length} steps`} />
    </figure>
  );
}

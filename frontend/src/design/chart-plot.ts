/** How a chart is drawn on uPlot: axes, lines, bands, stacks, marks. Knows the canvas; refuses to know what the numbers mean. */
import uPlot from "uplot";

export type LineColour = 1 | 2 | 3 | 4 | 5 | 6;

export interface ChartLine {
  label: string;
  values: (number | null)[];
  colour: LineColour;
  kind?: "line" | "points";
  isDashed?: boolean;
}

export interface ChartBand {
  label: string;
  low: (number | null)[];
  high: (number | null)[];
}

export interface ChartMark {
  step: number;
  tone: "attempt" | "incident";
}

export interface Drawing {
  lines: ChartLine[];
  band?: ChartBand;
  /** The lines are parts of a whole, one on the other. */
  isStacked?: boolean;
  range?: [number, number];
}

export interface Hooks {
  onHover: (index: number | null) => void;
  onPick: (index: number) => void;
  onSelect: (from: number, to: number) => void;
  marks: () => ChartMark[];
  chosen: () => number | undefined;
}

const STEP_INCREMENTS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000];
const DRAG_MIN_PX = 8;

const token = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The columns as uPlot wants them; the parts of a stack become sums, the whole first, so that each paints over the last. */
export function columns(steps: number[], { lines, band, isStacked }: Drawing): uPlot.AlignedData {
  const shown = isStacked ? stacked(lines.map((line) => line.values)) : lines.map((line) => line.values);
  return [steps, ...shown, ...(band ? [band.low, band.high] : [])] as uPlot.AlignedData;
}

function stacked(parts: (number | null)[][]): (number | null)[][] {
  const sums: (number | null)[][] = [];
  parts.forEach((part, index) => {
    const below = sums[index - 1];
    sums.push(part.map((value, at) => (value === null ? null : value + (below?.[at] ?? 0))));
  });
  return sums.reverse();
}

function lineOptions(line: ChartLine, isStacked: boolean): uPlot.Series {
  const stroke = token(`--line-${line.colour}`);
  if (line.kind === "points") return { stroke, width: 0, points: { show: true, size: 8, fill: token("--surface"), stroke, width: 2 }, spanGaps: false };
  return { stroke, fill: isStacked ? stroke : undefined, width: isStacked ? 0 : 2, dash: line.isDashed ? [5, 4] : undefined, spanGaps: true, points: { show: !isStacked && line.values.length < 2 } };
}

function axes(): uPlot.Axis[] {
  const font = `12px ${token("--text")}`;
  const look = { stroke: token("--ink-soft"), font, grid: { stroke: token("--line"), width: 1 }, ticks: { show: false } };
  // Steps are whole: no tick between two of them.
  return [{ ...look, incrs: STEP_INCREMENTS, size: 28 }, { ...look, size: 54, values: (_, ticks) => ticks.map(short) }];
}

function short(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(0);
  return String(Number(value.toPrecision(4)));
}

function verticalLine(plot: uPlot, step: number, colour: string, dash: number[]): void {
  const { ctx, bbox } = plot;
  const x = Math.round(plot.valToPos(step, "x", true));
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash(dash.map((part) => part * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

function drawMarks(plot: uPlot, hooks: Hooks): void {
  for (const { step, tone } of hooks.marks()) verticalLine(plot, step, token(tone === "attempt" ? "--line-strong" : "--bad"), tone === "attempt" ? [6, 4] : [2, 3]);
  const chosen = hooks.chosen();
  if (chosen !== undefined) verticalLine(plot, chosen, token("--ink"), []);
}

export function plotOptions(width: number, height: number, drawing: Drawing, syncKey: string, hooks: Hooks): uPlot.Options {
  const { lines, band, range, isStacked = false } = drawing;
  const shown = isStacked ? [...lines].reverse() : lines;
  const edge: uPlot.Series = { width: 0, points: { show: false }, spanGaps: true };
  return {
    width,
    height,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    scales: { x: { time: false }, y: range ? { range } : {} },
    axes: axes(),
    cursor: { sync: { key: syncKey, scales: ["x", null] }, y: false, drag: { x: true, y: false, setScale: false, dist: DRAG_MIN_PX }, points: { size: 7 } },
    series: [{}, ...shown.map((line) => lineOptions(line, isStacked)), ...(band ? [edge, edge] : [])],
    bands: band ? [{ series: [shown.length + 2, shown.length + 1], fill: token("--band") }] : undefined,
    hooks: {
      draw: [(plot) => drawMarks(plot, hooks)],
      setCursor: [(plot) => hooks.onHover(plot.cursor.left !== undefined && plot.cursor.left >= 0 ? (plot.cursor.idx ?? null) : null)],
      setSelect: [(plot) => select(plot, hooks)],
      ready: [(plot) => plot.over.addEventListener("click", () => typeof plot.cursor.idx === "number" && hooks.onPick(plot.cursor.idx))],
    },
  };
}

function select(plot: uPlot, hooks: Hooks): void {
  const { left, width } = plot.select;
  if (width < DRAG_MIN_PX) return;
  hooks.onSelect(Math.round(plot.posToVal(left, "x")), Math.round(plot.posToVal(left + width, "x")));
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
}

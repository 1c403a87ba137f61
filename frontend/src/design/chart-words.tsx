/** A chart without looking at it: its key with values, its numbers as a table, its course in a sentence. */
import { useState } from "react";
import type { ChartLine, Drawing } from "./chart-plot";
import { NOTHING } from "./format";

const ROWS_MAX = 100;

/** Three digits that matter, whatever the size. */
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NOTHING;
  const size = Math.abs(value);
  if (size >= 1_000) return Math.round(value).toLocaleString("en");
  if (size !== 0 && size < 0.001) return value.toExponential(1).replace("-", "−");
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3).replace("-", "−");
}

/** The value at a point or, without one, the newest. */
const shown = (values: (number | null)[], at: number | null) => (at === null ? values.findLast((value) => value !== null) : values[at]);

function Swatch({ line }: { line: ChartLine }) {
  return (
    <svg width="16" height="8" viewBox="0 0 16 8" aria-hidden="true" className={`line-${line.colour}`}>
      {line.kind === "points" ? <circle cx="8" cy="4" r="3" fillOpacity="0" strokeWidth="1.8" /> : <line x1="0" x2="16" y1="4" y2="4" strokeWidth="2.5" strokeDasharray={line.isDashed ? "5 3" : undefined} />}
    </svg>
  );
}

export function ChartKey({ drawing: { lines, band }, at }: { drawing: Drawing; at: number | null }) {
  return (
    <ul className="chart-key">
      {lines.map((line) => (
        <li key={line.label}><Swatch line={line} />{line.label} <b>{figure(shown(line.values, at))}</b></li>
      ))}
      {band && <li><svg width="16" height="8" viewBox="0 0 16 8" aria-hidden="true"><rect width="16" height="8" className="band-swatch" /></svg>{band.label} <b>{figure(shown(band.low, at))} – {figure(shown(band.high, at))}</b></li>}
    </ul>
  );
}

export function ChartTable({ title, steps, drawing: { lines, band } }: { title: string; steps: number[]; drawing: Drawing }) {
  const [isOpen, setOpen] = useState(false);
  const first = Math.max(0, steps.length - ROWS_MAX);
  const all = [...lines, ...(band ? [{ label: `${band.label}, low`, values: band.low }, { label: `${band.label}, high`, values: band.high }] : [])];
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary aria-label={`${title} as a table`}>As a table</summary>
      {isOpen && (
        <div className="chart-table" role="region" aria-label={`${title}: numbers`} tabIndex={0}>
          <table>
            <thead><tr><th scope="col">step</th>{all.map((line) => <th key={line.label} scope="col">{line.label}</th>)}</tr></thead>
            <tbody>
              {steps.slice(first).map((step, index) => (
                <tr key={step}><th scope="row">{step}</th>{all.map((line) => <td key={line.label}>{figure(line.values[first + index])}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}

/** "Reward over steps 1 to 40. mean: from 0.34 to 0.91, lowest 0.30, highest 0.93." */
export function spoken(title: string, steps: number[], { lines }: Drawing): string {
  const courses = lines.map(({ label, values }) => {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${label}: no points.`;
    return `${label}: from ${figure(known[0])} to ${figure(known.at(-1))}, lowest ${figure(Math.min(...known))}, highest ${figure(Math.max(...known))}.`;
  });
  return [`${title} over steps ${steps[0]} to ${steps.at(-1)}.`, ...courses].join(" ");
}

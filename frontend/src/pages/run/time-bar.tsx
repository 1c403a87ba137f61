/** Where the time of one rollout went. */
import type { LineColour } from "../../design/chart-plot";
import { ratio } from "../../design/format";

const WIDTH = 1_000;
const PARTS: [name: string, label: string, colour: LineColour][] = [
  ["model", "model calls", 1],
  ["environment", "environment and tools", 3],
  ["score", "scoring", 2],
];

export function TimeBar({ time }: { time: Record<string, number> }) {
  const whole = PARTS.reduce((sum, [name]) => sum + (time[name] ?? 0), 0);
  if (whole <= 0) return null;
  let from = 0;
  const shown = PARTS.map(([name, label, colour]) => {
    const seconds = time[name] ?? 0;
    const part = { label, colour, seconds, x: from, width: (seconds / whole) * WIDTH };
    from += part.width;
    return part;
  });
  return (
    <div className="stack tight">
      <svg className="time-bar" viewBox={`0 0 ${WIDTH} 10`} preserveAspectRatio="none" aria-hidden="true">
        {shown.map((part) => <rect key={part.label} x={part.x} width={part.width} height="10" className={`line-${part.colour}`} />)}
      </svg>
      <ul className="chart-key">
        {shown.map((part) => (
          <li key={part.label}>
            <svg width="10" height="10" aria-hidden="true" className={`line-${part.colour}`}><rect width="10" height="10" /></svg>
            {part.label} <b>{ratio(part.seconds)} s</b>
          </li>
        ))}
      </ul>
    </div>
  );
}

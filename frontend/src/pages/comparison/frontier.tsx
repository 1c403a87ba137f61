/** Mean reward over dollars a sample, with the line of those that nobody beats. The table above holds the same figures. */
import type { ComparedEvaluation } from "../../api/shapes";
import { dollars, ratio } from "../../design/format";

const WIDTH = 720;
const HEIGHT = 220;
const EDGE = 24;

interface Point {
  id: string;
  name: string;
  cost: number;
  mean: number;
  isBest: boolean;
}

function pointsOf(rows: ComparedEvaluation[]): Point[] {
  return rows.flatMap(({ evaluation, quality }) =>
    quality.mean === null || quality.cost_per_sample_usd === null
      ? []
      : [{ id: evaluation.evaluation_id, name: evaluation.model_name || evaluation.name, cost: quality.cost_per_sample_usd, mean: quality.mean, isBest: quality.best_for_cost }],
  );
}

/** Where a value stands between the least and the most of its kind. */
function scale(values: number[], from: number, to: number): (value: number) => number {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return (value) => (high === low ? (from + to) / 2 : from + ((value - low) / (high - low)) * (to - from));
}

export function Frontier({ rows }: { rows: ComparedEvaluation[] }) {
  const points = pointsOf(rows);
  if (points.length < 2) return null;
  const x = scale(points.map((point) => point.cost), EDGE, WIDTH - EDGE * 6);
  const y = scale(points.map((point) => point.mean), HEIGHT - EDGE, EDGE);
  const best = points.filter((point) => point.isBest).sort((a, b) => a.cost - b.cost);
  return (
    <figure>
      <svg className="bars" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label="Mean reward over dollars a sample">
        <line x1="0" x2={WIDTH} y1={HEIGHT - 6} y2={HEIGHT - 6} />
        <polyline points={best.map((point) => `${x(point.cost)},${y(point.mean)}`).join(" ")} fill="none" stroke="currentColor" strokeDasharray="4 4" />
        {points.map((point) => (
          <g key={point.id}>
            <circle cx={x(point.cost)} cy={y(point.mean)} r={point.isBest ? 6 : 4} className="bar"><title>{`${point.name}: ${ratio(point.mean, 3)} for ${dollars(point.cost)} a sample`}</title></circle>
            <text x={x(point.cost) + 10} y={y(point.mean) + 4} fill="currentColor" fontSize="12">{point.name}</text>
          </g>
        ))}
      </svg>
      <div className="bar-labels" aria-hidden="true">
        <span>{dollars(Math.min(...points.map((point) => point.cost)))} a sample</span>
        <span>{dollars(Math.max(...points.map((point) => point.cost)))}</span>
      </div>
    </figure>
  );
}

/** Bars over categories, drawn as SVG; the same figures stand beside it as a table for those who cannot see it. */

export interface Bar {
  label: string;
  value: number;
  /** What a pointer and a screen reader are told. */
  text: string;
}

const WIDTH = 720;
const HEIGHT = 180;
const BASE = HEIGHT - 22;
const TOP = 18;

export function Bars({ bars, label, top }: { bars: Bar[]; label: string; top: string }) {
  const most = Math.max(...bars.map((bar) => bar.value), 0) || 1;
  const pitch = WIDTH / bars.length;
  return (
    <figure>
      <svg className="bars" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        <line x1="0" x2={WIDTH} y1={TOP} y2={TOP} strokeDasharray="3 4" />
        <line x1="0" x2={WIDTH} y1={BASE} y2={BASE} />
        {bars.map((bar, index) => {
          const height = (bar.value / most) * (BASE - TOP);
          return (
            <rect key={bar.label} className="bar" x={index * pitch + pitch * 0.14} width={pitch * 0.72} y={BASE - height} height={height} rx="1.5">
              <title>{bar.text}</title>
            </rect>
          );
        })}
      </svg>
      <div className="bar-labels" aria-hidden="true">
        <span>{bars[0]?.label}</span>
        <span>{bars.at(-1)?.label}</span>
      </div>
      <p className="muted small">Highest: {top}</p>
      {/* A table takes no height of its own: what hides it is around it. */}
      <div className="hidden">
        <table>
          <caption>{label}</caption>
          <tbody>{bars.map((bar) => <tr key={bar.label}><th scope="row">{bar.label}</th><td>{bar.text}</td></tr>)}</tbody>
        </table>
      </div>
    </figure>
  );
}

/** A titled part of a page, and a strip of figures. */
import { type ReactNode, useId } from "react";

export function Card({ title, note, actions, children }: { title?: ReactNode; note?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <section className="card" aria-labelledby={title ? id : undefined}>
      {(title || actions) && (
        <div className="card-head">
          <div className="stack tight">
            {title && <h2 id={id}>{title}</h2>}
            {note && <p className="muted small">{note}</p>}
          </div>
          {actions && <div className="row">{actions}</div>}
        </div>
      )}
      {children}
    </section>
  );
}

export function Stats({ label, children }: { label: string; children: ReactNode }) {
  return (
    <dl className="stats" aria-label={label}>
      {children}
    </dl>
  );
}

export function Stat({ label, value, note }: { label: string; value: ReactNode; note?: ReactNode }) {
  return (
    <div className="stat">
      <dt>{label}</dt>
      <dd>
        {value}
        {note && <div className="note">{note}</div>}
      </dd>
    </div>
  );
}

/** Names and values, as a list. */
export function Definitions({ of }: { of: [string, ReactNode][] }) {
  return (
    <dl className="definitions">
      {of.map(([name, value]) => (
        <div key={name} className="contents">
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

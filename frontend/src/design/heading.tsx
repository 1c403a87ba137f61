/** A page's first heading, which is also the document's title. */
import { type ReactNode, useEffect } from "react";

export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Rootstock` : "Rootstock";
  }, [title]);
}

export function Heading({ title, note, children }: { title: string; note?: ReactNode; children?: ReactNode }) {
  usePageTitle(title);
  return (
    <header className="head">
      <div className="head-text">
        <h1>{title}</h1>
        {note && <p className="muted">{note}</p>}
      </div>
      {children && <div className="row">{children}</div>}
    </header>
  );
}

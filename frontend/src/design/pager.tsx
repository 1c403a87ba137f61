/** Steps through pages: by number where the server counts, by cursor where it does not. */

/** `1 run`, `2 runs`: what is counted here is regular. */
const counted = (total: number, what: string) => `${total.toLocaleString("en")} ${total === 1 ? what.replace(/s$/, "") : what}`;

export function Pager({ page, pages, total, what, onPage }: { page: number; pages: number; total: number; what: string; onPage: (page: number) => void }) {
  if (pages <= 1) return <p className="pager">{counted(total, what)}</p>;
  return (
    <nav className="pager" aria-label={`Pages of ${what}`}>
      <span>Page {page} of {pages}, {counted(total, what)}</span>
      <Steps canGoBack={page > 1} canGoOn={page < pages} onBack={() => onPage(page - 1)} onOn={() => onPage(page + 1)} />
    </nav>
  );
}

/** `trail` holds the cursors of the pages before this one. */
export function CursorPager({ trail, next, what, onTrail }: { trail: string[]; next: string | null | undefined; what: string; onTrail: (trail: string[]) => void }) {
  if (trail.length === 0 && !next) return null;
  return (
    <nav className="pager" aria-label={`Pages of ${what}`}>
      <span>Page {trail.length + 1}</span>
      <Steps canGoBack={trail.length > 0} canGoOn={Boolean(next)} onBack={() => onTrail(trail.slice(0, -1))} onOn={() => next && onTrail([...trail, next])} />
    </nav>
  );
}

function Steps({ canGoBack, canGoOn, onBack, onOn }: { canGoBack: boolean; canGoOn: boolean; onBack: () => void; onOn: () => void }) {
  return (
    <span className="row">
      <button type="button" className="button slim" disabled={!canGoBack} onClick={onBack}>Previous</button>
      <button type="button" className="button slim" disabled={!canGoOn} onClick={onOn}>Next</button>
    </span>
  );
}

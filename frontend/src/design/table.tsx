/** One table for every list: columns say how a cell looks and sorts; rows are already in memory. */
import { type ReactNode, useMemo, useState } from "react";

export interface Column<T> {
  name: string;
  cell: (row: T) => ReactNode;
  /** By what the column sorts; without it, it does not. */
  sortBy?: (row: T) => string | number | null | undefined;
  kind?: "text" | "number" | "actions";
}

interface Order {
  name: string;
  isDescending: boolean;
}

/** Rows without a value stand last, whichever way. */
function compare(a: string | number | null | undefined, b: string | number | null | undefined, isDescending: boolean): number {
  if (a == null || b == null) return (a == null ? 1 : 0) - (b == null ? 1 : 0);
  const difference = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  return isDescending ? -difference : difference;
}

function sorted<T>(rows: readonly T[], columns: Column<T>[], order: Order | undefined): readonly T[] {
  const sortBy = columns.find((column) => column.name === order?.name)?.sortBy;
  if (!order || !sortBy) return rows;
  return [...rows].sort((a, b) => compare(sortBy(a), sortBy(b), order.isDescending));
}

function Head<T>({ column, order, onSort }: { column: Column<T>; order: Order | undefined; onSort: (name: string) => void }) {
  const kind = column.kind === "text" ? undefined : column.kind;
  if (!column.sortBy) return <th scope="col" className={kind}>{column.kind === "actions" ? <span className="hidden">{column.name}</span> : column.name}</th>;
  const isChosen = order?.name === column.name;
  return (
    <th scope="col" className={kind} aria-sort={isChosen ? (order.isDescending ? "descending" : "ascending") : undefined}>
      <button type="button" className="sort" onClick={() => onSort(column.name)}>
        {column.name} <span aria-hidden="true">{isChosen && order.isDescending ? "↓" : "↑"}</span>
      </button>
    </th>
  );
}

/** `caption` names the table for those who do not see it. Without an order chosen, rows stand as they came. */
export function Table<T>({ caption, columns, rows, rowKey, isStale = false }: { caption: string; columns: Column<T>[]; rows: readonly T[]; rowKey: (row: T) => string; isStale?: boolean }) {
  const [order, setOrder] = useState<Order>();
  const shown = useMemo(() => sorted(rows, columns, order), [rows, columns, order]);
  const sort = (name: string) =>
    setOrder((known) => (known?.name !== name ? { name, isDescending: false } : known.isDescending ? undefined : { name, isDescending: true }));
  return (
    <div className={`table-wrap ${isStale ? "table-stale" : ""}`} role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption className="hidden">{caption}</caption>
        <thead>
          <tr>{columns.map((column) => <Head key={column.name} column={column} order={order} onSort={sort} />)}</tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((column) => <td key={column.name} className={column.kind === "text" ? undefined : column.kind}>{column.cell(row)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

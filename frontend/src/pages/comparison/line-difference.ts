/** The difference of two texts by line: the longest common subsequence stays, the rest is removed or added. */

export interface Line {
  kind: "same" | "removed" | "added";
  text: string;
}

/** Beyond this many cells of the table, the texts are shown one after the other. */
const CELLS_MAX = 4_000_000;

export function differenceOf(before: string, after: string): Line[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  if (a.length * b.length > CELLS_MAX) return [...a.map((text): Line => ({ kind: "removed", text })), ...b.map((text): Line => ({ kind: "added", text }))];
  const common = lengths(a, b);
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i] ?? "" });
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && at(common, i + 1, j) >= at(common, i, j + 1))) {
      lines.push({ kind: "removed", text: a[i] ?? "" });
      i += 1;
    } else {
      lines.push({ kind: "added", text: b[j] ?? "" });
      j += 1;
    }
  }
  return lines;
}

const at = (table: Uint32Array[], i: number, j: number) => table[i]?.[j] ?? 0;

/** `[i][j]`: how many lines the rests from i and j have in common, in order. */
function lengths(a: string[], b: string[]): Uint32Array[] {
  const table = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    const row = table[i] as Uint32Array;
    for (let j = b.length - 1; j >= 0; j -= 1) row[j] = a[i] === b[j] ? at(table, i + 1, j + 1) + 1 : Math.max(at(table, i + 1, j), at(table, i, j + 1));
  }
  return table;
}

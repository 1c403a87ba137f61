/** Sums over the daily rows of the bill. All of it in micro-dollars; days are those of the ledger (UTC). */

export interface DailyRow {
  day: string;
  meter: string;
  amount_microusd: number;
}

const total = (rows: DailyRow[]) => rows.reduce((sum, row) => sum + row.amount_microusd, 0);

export function currentMonth(rows: DailyRow[], now = new Date()): { rows: DailyRow[]; total: number; days: number[] } {
  const month = now.toISOString().slice(0, 7);
  const own = rows.filter((row) => row.day.startsWith(month));
  return { rows: own, total: total(own), days: [...Map.groupBy(own, (row) => row.day).values()].map(total) };
}

/** The dearest meter first. */
export function byMeter(rows: DailyRow[]): { meter: string; amount: number }[] {
  const meters = [...Map.groupBy(rows, (row) => row.meter)];
  return meters.map(([meter, own]) => ({ meter, amount: total(own) })).sort((a, b) => b.amount - a.amount);
}

/** One entry per day from `first` on, those without a cost included. */
export function everyDay(rows: DailyRow[], first: string, days: number): { day: string; amount: number }[] {
  const amounts = Map.groupBy(rows, (row) => row.day);
  const start = Date.parse(`${first}T00:00:00Z`);
  return Array.from({ length: days }, (_, index) => {
    const day = new Date(start + index * 86_400_000).toISOString().slice(0, 10);
    return { day, amount: total(amounts.get(day) ?? []) };
  });
}

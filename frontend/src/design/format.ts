/** Numbers, money and time as people read them. */

const whole = new Intl.NumberFormat("en");
const short = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

export const count = (value: number) => whole.format(value);
export const when = (iso: string | null) => (iso ? short.format(new Date(iso)) : "—");

/** Small bills are the rule here: six digits below a cent, two above. */
export function dollars(usd: number): string {
  const digits = usd !== 0 && Math.abs(usd) < 0.01 ? 6 : 2;
  return `${usd < 0 ? "−" : ""}$${Math.abs(usd).toFixed(digits)}`;
}

export const microDollars = (microusd: number) => dollars(microusd / 1e6);

export function ratio(value: unknown, digits = 2): string {
  return typeof value === "number" && Number.isFinite(value) ? value.toFixed(digits) : "—";
}

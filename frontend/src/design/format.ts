/** Numbers, money and time as people read them. */

const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const moment = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const full = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

export const NOTHING = "—";

export const count = (value: number) => whole.format(value);
export const roughly = (value: number) => (Math.abs(value) < 10_000 ? whole.format(value) : compact.format(value));
export const when = (iso: string | null | undefined) => (iso ? moment.format(new Date(iso)) : NOTHING);
export const exactly = (iso: string) => full.format(new Date(iso));

const SPANS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
];

/** `4 min`, `2 h`, `3 d`; below a minute in seconds. */
export function duration(seconds: number): string {
  for (const [length, unit] of SPANS) {
    if (seconds >= length) return `${Math.floor(seconds / length)} ${unit}`;
  }
  return `${Math.max(0, Math.round(seconds))} s`;
}

export function ago(iso: string, now = Date.now()): string {
  const seconds = (now - new Date(iso).getTime()) / 1000;
  return seconds < 5 ? "just now" : `${duration(seconds)} ago`;
}

/** Small bills are the rule here: six digits below a cent, two above. */
export function dollars(usd: number): string {
  const digits = usd !== 0 && Math.abs(usd) < 0.01 ? 6 : 2;
  const [units, cents] = Math.abs(usd).toFixed(digits).split(".");
  return `${usd < 0 ? "−" : ""}$${whole.format(Number(units))}.${cents}`;
}

export const microDollars = (microusd: number) => dollars(microusd / 1e6);

export function ratio(value: unknown, digits = 2): string {
  return typeof value === "number" && Number.isFinite(value) ? value.toFixed(digits).replace("-", "−") : NOTHING;
}

const SIZES = ["B", "KiB", "MiB", "GiB"];

export function bytes(size: number): string {
  const power = size > 0 ? Math.min(SIZES.length - 1, Math.floor(Math.log2(size) / 10)) : 0;
  const value = size / 2 ** (10 * power);
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${SIZES[power]}`;
}

/** `training_tokens` → `training tokens`. */
export const words = (name: string) => name.replaceAll("_", " ");

/** The first characters of a digest tell two apart. */
export const shortDigest = (digest: string) => digest.replace(/^sha256:/, "").slice(0, 12);

/** How a token reads: visible white space, and a log-probability as one of five levels. Pure. */

export const LEVELS = ["≥ 0.9", "0.5 – 0.9", "0.2 – 0.5", "0.05 – 0.2", "< 0.05"] as const;
const LIMITS = [0.9, 0.5, 0.2, 0.05];

/** 0 for what the policy was sure of, 4 for what surprised it. */
export function level(logprob: number): number {
  const probability = Math.exp(logprob);
  const at = LIMITS.findIndex((limit) => probability >= limit);
  return at === -1 ? LIMITS.length : at;
}

const SIGNS: Record<string, string> = { "\n": "⏎", "\t": "⇥", "\r": "␍" };

export function visible(text: string | undefined, id: number): string {
  if (text === undefined || text === "") return `[${id}]`;
  return text.replace(/[\n\t\r]/g, (sign) => SIGNS[sign] ?? sign);
}

export const endsLine = (text: string | undefined) => text?.endsWith("\n") ?? false;

/** The numbers of a run as the page keeps them: a snapshot of the server's, grown by the steps that the stream brings. Pure. */
import type { components } from "../../api/schema";
import type { RunEvent } from "../../api/use-run-events";

export type Curves = components["schemas"]["CurvesAnswer"];
export type Values = (number | null)[];

/** So many steps may be added before the server is asked for a thinner picture. */
export const GROWTH_MAX = 600;

const metricsOf = (event: RunEvent) => (event.payload.metrics ?? {}) as Record<string, number>;

/** Everything before the first point at or behind `step`. */
function before(curves: Curves, step: number): number {
  const at = curves.steps.findIndex((known) => known >= step);
  return at === -1 ? curves.steps.length : at;
}

/**
 * The curves with one more step. A step of a later attempt begins a branch: the points from it on that another attempt had made
 * are folded, so that each step has one value.
 */
export function withStep(curves: Curves, event: RunEvent): Curves {
  const step = event.step ?? 0;
  const kept = before(curves, step);
  const metrics = metricsOf(event);
  const names = new Set([...Object.keys(curves.series), ...Object.keys(metrics)]);
  const series: Record<string, Values> = {};
  for (const name of names) {
    const past = curves.series[name]?.slice(0, kept) ?? Array<null>(kept).fill(null);
    series[name] = [...past, metrics[name] ?? null];
  }
  const isNew = kept === curves.steps.length;
  return {
    ...curves,
    steps: [...curves.steps.slice(0, kept), step],
    series,
    steps_count: isNew ? curves.steps_count + 1 : curves.steps_count,
    attempts: withAttempt(curves.attempts, event, step),
    branches: isNew ? curves.branches : withBranch(curves, event, kept),
  };
}

function withAttempt(attempts: Curves["attempts"], event: RunEvent, step: number): Curves["attempts"] {
  const last = attempts.at(-1);
  if (last?.attempt === event.attempt) return [...attempts.slice(0, -1), { ...last, last_step: step, last_at: event.at }];
  const shortened = attempts.filter((one) => one.first_step < step).map((one) => ({ ...one, last_step: Math.min(one.last_step, step - 1) }));
  return [...shortened, { attempt: event.attempt, segment: event.segment, first_step: step, last_step: step, started_at: event.at, last_at: event.at }];
}

function withBranch(curves: Curves, event: RunEvent, kept: number): Curves["branches"] {
  const from = curves.attempts.at(-1)?.attempt;
  const steps = curves.steps.slice(kept);
  const first = steps[0];
  const last = steps.at(-1);
  if (from === undefined || from === event.attempt || first === undefined || last === undefined) return curves.branches;
  const rewards = curves.series.reward?.slice(kept) ?? steps.map(() => null);
  return [...curves.branches, { attempt: from, superseded_by: event.attempt, first_step: first, last_step: last, steps, rewards }];
}

/** Names below a prefix: `under(curves, "reward/")` are the environments. */
export function under(curves: Curves, prefix: string): string[] {
  return Object.keys(curves.series).filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length)).sort();
}

export const latest = (curves: Curves, name: string): number | null => curves.series[name]?.findLast((value) => value !== null) ?? null;

/** Which charts a run has, from the names of its metrics (trainer/orchestrator/steps/metrics.py). Pure: numbers in, drawings out. */
import type { RunEvent } from "../../api/use-run-events";
import type { ChartLine, Drawing, LineColour } from "../../design/chart-plot";
import { words } from "../../design/format";
import { type Curves, type Values, under } from "./curves-model";

export interface Spec extends Drawing {
  title: string;
  note?: string;
}

export interface Section {
  title: string;
  charts: Spec[];
}

export type BandKind = "sigma" | "groups";
const COLOURS: LineColour[] = [1, 2, 3, 4, 5, 6];
const PARTS_MAX = 6;
const FAULTS: [label: string, states: string[], colour: LineColour][] = [
  ["environment", ["failed", "incomplete", "deadline"], 5],
  ["infrastructure", ["infrastructure"], 4],
  ["too late or cancelled", ["stale", "cancelled"], 6],
  ["filtered", ["filtered"], 3],
];
const TIMES: [name: string, label: string, colour: LineColour][] = [
  ["generate", "generate", 1],
  ["environment", "environment and tools", 3],
  ["score", "score", 2],
  ["trainer_queue", "wait for the trainer", 6],
  ["train", "train", 4],
  ["publish", "publish", 5],
];

/** The common axis: all steps, and those of evaluations beside them (step 0, before anything was trained). */
export function axisOf(curves: Curves, evaluations: RunEvent[]): number[] {
  const steps = new Set(curves.steps);
  for (const event of evaluations) if (event.step !== null) steps.add(event.step);
  for (const branch of curves.branches) for (const step of branch.steps) steps.add(step);
  return [...steps].sort((a, b) => a - b);
}

export class Plotter {
  private readonly position: Map<number, number>;

  constructor(
    readonly curves: Curves,
    readonly axis: number[],
  ) {
    this.position = new Map(axis.map((step, index) => [step, index]));
  }

  /** Values by step on the common axis. */
  spread(steps: number[], values: Values): Values {
    const column: Values = Array<null>(this.axis.length).fill(null);
    steps.forEach((step, index) => {
      const at = this.position.get(step);
      if (at !== undefined) column[at] = values[index] ?? null;
    });
    return column;
  }

  column(name: string): Values {
    return this.spread(this.curves.steps, this.curves.series[name] ?? []);
  }

  line(name: string, label: string, colour: LineColour = 1, isDashed = false): ChartLine {
    return { label, values: this.column(name), colour, isDashed };
  }

  each(prefix: string): ChartLine[] {
    const names = under(this.curves, prefix);
    return names.slice(0, PARTS_MAX).map((name, index) => this.line(prefix + name, name, COLOURS[index], index >= 3));
  }

  evaluations(events: RunEvent[]): ChartLine[] {
    const names = [...new Set(events.map((event) => String(event.payload.environment)))];
    return names.slice(0, PARTS_MAX).map((name, index) => {
      const own = events.filter((event) => event.payload.environment === name && event.step !== null);
      const values = this.spread(own.map((event) => event.step ?? 0), own.map((event) => event.payload.reward_mean as number | null));
      return { label: `evaluation ${name.replace(/ \(eval\)$/, "")}`, values, colour: COLOURS[(index + 1) % COLOURS.length] ?? 2, kind: "points" };
    });
  }
}

const combined = (left: Values, right: Values, combine: (a: number, b: number) => number): Values =>
  left.map((value, index) => (value === null ? null : combine(value, right[index] ?? 0)));

export function rewardSpec(plotter: Plotter, evaluations: RunEvent[], band: BandKind, showsBranches: boolean): Spec {
  const mean = plotter.column("reward");
  const deviation = plotter.column("reward_std");
  const folded: ChartLine[] = plotter.curves.branches.map((branch) => ({
    label: `folded branch of attempt ${branch.attempt}`,
    values: plotter.spread(branch.steps, branch.rewards),
    colour: 6,
    isDashed: true,
  }));
  return {
    title: "Reward",
    lines: [{ label: "mean", values: mean, colour: 1 }, ...plotter.evaluations(evaluations), ...(showsBranches ? folded : [])],
    band:
      band === "groups"
        ? { label: "group means", low: plotter.column("reward_group_min"), high: plotter.column("reward_group_max") }
        : { label: "mean ± σ", low: combined(mean, deviation, (a, b) => a - b), high: combined(mean, deviation, (a, b) => a + b) },
  };
}

function shareOf(plotter: Plotter, states: string[]): Values {
  const all = plotter.column("rollouts");
  const counts = states.map((state) => plotter.column(`rollouts_${state}`));
  return all.map((total, index) => (total ? counts.reduce((sum, column) => sum + (column[index] ?? 0), 0) / total : null));
}

function timeSpec(plotter: Plotter): Spec {
  const parts = TIMES.map(([name]) => plotter.column(`time/${name}_s`));
  const whole = plotter.axis.map((_, index) => parts.reduce((sum, column) => sum + (column[index] ?? 0), 0));
  const lines = TIMES.map(([, label, colour], part): ChartLine => ({
    label,
    colour,
    values: (parts[part] ?? []).map((value, index) => (value === null || !whole[index] ? null : value / whole[index])),
  }));
  return { title: "Where a step's time goes", note: "shares of the time between two steps", lines, isStacked: true, range: [0, 1] };
}

/** What each environment pays and measures; where there are several, each has a section of its own. */
function rewardSections(plotter: Plotter): Section[] {
  const environments = under(plotter.curves, "reward/");
  const own = (name: string): Spec[] => [
    { title: "Reward parts", note: "means", lines: plotter.each(`reward_part/${name}/`) },
    { title: "Metrics", note: "measured, not paid", lines: plotter.each(`metric/${name}/`) },
  ];
  const title = "What the reward is made of";
  if (environments.length < 2) return [{ title, charts: environments.flatMap(own) }];
  const compared = { title, charts: [{ title: "Reward by environment", lines: plotter.each("reward/") }] };
  return [compared, ...environments.map((name) => ({ title: `The reward of ${name}`, charts: own(name) }))];
}

/** Whether there is anything to draw: a run of datasets alone has no reward. */
export const isDrawn = (spec: Spec) => spec.lines.some((line) => line.values.some((value) => value !== null));

/** Everything but the reward's own chart. A chart without a metric is left out, so that an old run shows what it has. */
export function sectionsOf(plotter: Plotter): Section[] {
  const lengths = { low: plotter.column("output_tokens_min"), high: plotter.column("output_tokens_max"), label: "shortest – longest" };
  const share: [number, number] = [0, 1];
  const sections: Section[] = [
    ...rewardSections(plotter),
    {
      title: "Learning",
      charts: [
        { title: "Loss", lines: [plotter.line("loss", "loss")] },
        { title: "Cross-entropy", note: "of the tokens that are learnt as they are", lines: [plotter.line("ce_loss", "per token")] },
        { title: "Entropy", lines: [plotter.line("entropy", "per token")] },
        { title: "Mismatch KL", note: "sampler against trainer", lines: [plotter.line("mismatch_kl", "per token")] },
        { title: "Step KL", note: "the policy after a step against before it", lines: [plotter.line("step_kl", "per token")] },
        { title: "Gradient norm", lines: [plotter.line("grad_norm", "before the clip")] },
        { title: "Staleness", note: "steps behind", lines: [plotter.line("staleness_max", "largest", 2, true), plotter.line("staleness_mean", "mean")] },
        {
          title: "Nothing to learn from",
          note: "shares",
          range: share,
          lines: [plotter.line("zero_advantage_fraction", "advantage 0"), plotter.line("masked_fraction", "masked by the trust region", 2, true)],
        },
      ],
    },
    {
      title: "Datasets",
      charts: [
        { title: "Rows of a step", lines: plotter.each("dataset_rows/") },
        { title: "Tokens of a step", lines: plotter.each("dataset_tokens/") },
        { title: "Times through", note: "epochs", lines: plotter.each("dataset_epochs/") },
        { title: "Rows left out", note: "that the model cannot take", lines: plotter.each("dataset_dropped/") },
      ],
    },
    {
      title: "Rollouts",
      charts: [
        { title: "Response length", note: "tokens", lines: [plotter.line("output_tokens_mean", "mean")], band: lengths },
        { title: "Cut off at the token limit", note: "share", range: share, lines: [plotter.line("truncated_fraction", "truncated")] },
        {
          title: "Rollouts that failed, by fault",
          note: "shares of all accounted",
          range: share,
          isStacked: true,
          lines: FAULTS.map(([label, states, colour]) => ({ label, colour, values: shareOf(plotter, states) })),
        },
      ],
    },
    {
      title: "Speed",
      charts: [timeSpec(plotter), { title: "Trained tokens a second", lines: [plotter.line("tokens_per_s", "tokens/s")] }, { title: "Time of a step", note: "seconds", lines: [plotter.line("step_time_s", "step")] }],
    },
  ];
  return sections.map((section) => ({ ...section, charts: section.charts.filter(isDrawn) })).filter((section) => section.charts.length > 0);
}

/** Trained rollouts by staleness at one step: `[[0, 40], [1, 24]]`. */
export function stalenessBars(curves: Curves, step: number): [number, number][] {
  const at = curves.steps.indexOf(step);
  const bars = under(curves, "staleness/").map((age): [number, number] => [Number(age), curves.series[`staleness/${age}`]?.[at] ?? 0]);
  return bars.filter(([, count]) => count > 0).sort(([a], [b]) => a - b);
}

export const readable = (name: string) => words(name.replace("/", ": "));

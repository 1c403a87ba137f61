/** One step: chosen on a chart or with the keyboard, its figures, and the way to its rollouts. */
import { ratio } from "../../design/format";
import { stalenessBars } from "./chart-specs";
import type { Curves } from "./curves-model";
import { StepPicker } from "./step-picker";

export function StepCard({ curves, step, onStep, onOpen }: { curves: Curves; step: number; onStep: (step: number) => void; onOpen: (step: number) => void }) {
  const at = curves.steps.indexOf(step);
  const value = (name: string) => curves.series[name]?.[at];
  const bars = stalenessBars(curves, step);
  return (
    <section className="step-card" aria-label="Chosen step">
      <StepPicker step={step} steps={curves.steps} onStep={onStep} />
      <p className="small" aria-live="polite">
        reward <b>{ratio(value("reward"), 3)}</b> · {ratio(value("trained_rollouts"), 0)} rollouts trained on of {ratio(value("rollouts"), 0)} accounted ·{" "}
        {ratio(value("step_time_s"), 1)} s{bars.length > 0 && <> · staleness {bars.map(([age, count]) => `${age}: ${Math.round(count)}`).join(", ")}</>}
      </p>
      <button type="button" className="button primary slim" onClick={() => onOpen(step)}>Open its rollouts</button>
    </section>
  );
}

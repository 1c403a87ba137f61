/** Goes through the steps of a run without a pointer: back, on, or by number. */
import { useEffect, useState } from "react";

/** `steps` are those that have a point. With `takesAny` the steps between two thinned points can be chosen, too. */
export function StepPicker({ step, steps, takesAny = false, onStep }: { step: number; steps: number[]; takesAny?: boolean; onStep: (step: number) => void }) {
  const [typed, setTyped] = useState(String(step));
  useEffect(() => setTyped(String(step)), [step]);
  const last = steps.at(-1) ?? step;
  const earlier = takesAny ? (step > 1 ? step - 1 : undefined) : steps.findLast((one) => one < step);
  const later = takesAny ? (step < last ? step + 1 : undefined) : steps.find((one) => one > step);
  const go = () => {
    const wanted = Number(typed);
    const nearest = takesAny ? Math.min(last, wanted) : (steps.findLast((one) => one <= wanted) ?? steps[0]);
    if (nearest !== undefined && typed !== "") onStep(nearest);
    setTyped(String(nearest ?? step));
  };
  return (
    <div className="step-picker" role="group" aria-label="Step">
      <button type="button" className="button slim" aria-label="Earlier step" disabled={earlier === undefined} onClick={() => earlier !== undefined && onStep(earlier)}>←</button>
      <label>
        Step{" "}
        <input
          className="input"
          inputMode="numeric"
          value={typed}
          onChange={(event) => setTyped(event.target.value.replace(/\D/g, ""))}
          onBlur={go}
          onKeyDown={(event) => event.key === "Enter" && go()}
        />
      </label>
      <button type="button" className="button slim" aria-label="Later step" disabled={later === undefined} onClick={() => later !== undefined && onStep(later)}>→</button>
    </div>
  );
}

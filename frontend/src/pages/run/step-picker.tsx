/** Goes through the steps of a run without a pointer: back, on, or by number. */
import { useEffect, useState } from "react";

export function StepPicker({ step, steps, onStep }: { step: number; steps: number[]; onStep: (step: number) => void }) {
  const [typed, setTyped] = useState(String(step));
  useEffect(() => setTyped(String(step)), [step]);
  const earlier = steps.findLast((one) => one < step);
  const later = steps.find((one) => one > step);
  const go = () => {
    const wanted = Number(typed);
    const nearest = steps.findLast((one) => one <= wanted) ?? steps[0];
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

/** Form fields with label, hint and the server's complaint by field. A 422 names its field: `problem.fields[name]`. */
import { type ComponentProps, type FormEvent, type ReactNode, useId } from "react";
import type { ApiProblem } from "../api/problem";
import { Problem } from "./notice";

interface Labelled {
  label: string;
  hint?: ReactNode;
  complaint?: string;
}

interface Wiring {
  id: string;
  "aria-invalid"?: true;
  "aria-describedby"?: string;
}

function Frame({ label, hint, complaint, className = "", children }: Labelled & { className?: string; children: (wiring: Wiring) => ReactNode }) {
  const id = useId();
  const note = complaint ?? hint;
  return (
    <div className={`field ${className}`}>
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-invalid": complaint ? true : undefined, "aria-describedby": note ? `${id}-note` : undefined })}
      {note && <span id={`${id}-note`} className={complaint ? "complaint" : "hint"}>{note}</span>}
    </div>
  );
}

export function Field({ label, hint, complaint, className, ...input }: Labelled & ComponentProps<"input">) {
  return (
    <Frame label={label} hint={hint} complaint={complaint} className={className}>
      {(wiring) => <input {...wiring} {...input} />}
    </Frame>
  );
}

export function TextArea({ label, hint, complaint, className, ...area }: Labelled & ComponentProps<"textarea">) {
  return (
    <Frame label={label} hint={hint} complaint={complaint} className={className}>
      {(wiring) => <textarea {...wiring} {...area} />}
    </Frame>
  );
}

export function Select({ label, hint, complaint, className, options, ...select }: Labelled & ComponentProps<"select"> & { options: readonly (readonly [value: string, text: string])[] }) {
  return (
    <Frame label={label} hint={hint} complaint={complaint} className={className}>
      {(wiring) => (
        <select {...wiring} {...select}>
          {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
        </select>
      )}
    </Frame>
  );
}

/** Fields, the failure that belongs to none of them, and the button that sends them. */
export function Form({ onSubmit, problem, names, children }: { onSubmit: (values: FormData, form: HTMLFormElement) => void; problem: ApiProblem | undefined; names: string[]; children: ReactNode }) {
  const isTold = problem !== undefined && names.some((name) => problem.fields[name] !== undefined);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    onSubmit(new FormData(event.currentTarget), event.currentTarget);
  };
  return (
    <form className="form" onSubmit={submit}>
      {children}
      {!isTold && <Problem of={problem} />}
    </form>
  );
}

/** A choice among few, as buttons in a row. */
export function Segmented<T extends string>({ label, options, chosen, onChoose }: { label: string; options: readonly (readonly [T, string])[]; chosen: T; onChoose: (value: T) => void }) {
  return (
    <div className="segmented" role="group" aria-label={label}>
      {options.map(([value, text]) => (
        <button key={value} type="button" aria-pressed={value === chosen} onClick={() => onChoose(value)}>{text}</button>
      ))}
    </div>
  );
}

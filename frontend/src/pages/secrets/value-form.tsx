/** Name, value and description of a secret or a variable, as it is made. A secret's value is typed unseen and told to nobody again. */
import type { ApiProblem } from "../../api/problem";
import { Field, Form } from "../../design/form";

export interface NewValue {
  name: string;
  value: string;
  description: string | null;
}

interface Asking {
  what: "secret" | "variable";
  problem: ApiProblem | undefined;
  isBusy: boolean;
  /** Whether it was made. */
  onSubmit: (value: NewValue) => Promise<boolean>;
}

export function ValueForm({ what, problem, isBusy, onSubmit }: Asking) {
  const isSecret = what === "secret";
  const submit = async (values: FormData, form: HTMLFormElement) => {
    const given = { name: String(values.get("name")), value: String(values.get("value")), description: String(values.get("description")) || null };
    if (await onSubmit(given)) form.reset();
  };
  return (
    <Form onSubmit={(values, form) => void submit(values, form)} problem={problem} names={["name", "value", "description"]}>
      <div className="fields">
        <Field label="Name" name="name" required maxLength={255} autoComplete="off" hint="Of the environment variable, such as API_KEY." complaint={problem?.fields.name} />
        <Field label="Value" name="value" required type={isSecret ? "password" : "text"} autoComplete={isSecret ? "new-password" : "off"} hint={isSecret ? "Shown to nobody again; masked in logs from 8 characters on." : "Shown here and in logs."} complaint={problem?.fields.value} />
        <Field label="Description" name="description" maxLength={500} hint="What it is for." complaint={problem?.fields.description} />
      </div>
      <div><button className="button primary" disabled={isBusy}>{isSecret ? "Keep the secret" : "Set the variable"}</button></div>
    </Form>
  );
}

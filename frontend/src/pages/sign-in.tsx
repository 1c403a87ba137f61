/** The gate: sign in, or make an account with a personal team and a wallet. */
import { useState } from "react";
import { api } from "../api/client";
import { useAction } from "../api/use-action";
import { Field, Form } from "../design/form";
import { usePageTitle } from "../design/heading";
import { Mark } from "../design/icons";

interface Account {
  email: string;
  password: string;
  name: string;
}

export function SignInPage({ onDone }: { onDone: () => void }) {
  const [isNew, setNew] = useState(false);
  usePageTitle(isNew ? "Sign up" : "Sign in");
  const enter = useAction(
    ({ name, ...credentials }: Account) => (isNew ? api.post("/api/v1/auth/sign-up", { body: { ...credentials, name } }) : api.post("/api/v1/auth/sign-in", { body: credentials })),
    onDone,
  );
  const submit = (values: FormData) => {
    const text = (name: string) => String(values.get(name) ?? "");
    void enter.run({ email: text("email"), password: text("password"), name: text("name") });
  };
  const turn = () => {
    setNew(!isNew);
    enter.reset();
  };
  const complaints = enter.problem?.fields ?? {};
  return (
    <main className="gate">
      <section className="card">
        <span className="brand"><Mark size={28} />Rootstock</span>
        <div className="stack tight">
          <h1>{isNew ? "Make an account" : "Sign in"}</h1>
          <p className="muted">Train adapters on a shared base model and serve them.</p>
        </div>
        <Form onSubmit={submit} problem={enter.problem} names={["name", "email", "password"]}>
          {isNew && <Field label="Name" name="name" autoComplete="name" required complaint={complaints.name} />}
          <Field label="E-mail" name="email" type="email" autoComplete="email" required complaint={complaints.email} />
          <Field
            label="Password"
            name="password"
            type="password"
            autoComplete={isNew ? "new-password" : "current-password"}
            required
            hint={isNew ? "Ten characters or more." : undefined}
            complaint={complaints.password}
          />
          <button className="button primary" disabled={enter.isBusy}>{isNew ? "Sign up" : "Sign in"}</button>
        </Form>
        <button type="button" className="button quiet" onClick={turn}>{isNew ? "I have an account" : "Make an account"}</button>
      </section>
    </main>
  );
}

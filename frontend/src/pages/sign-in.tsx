/** The gate: sign in, or make an account with a personal team and a wallet. */
import { type FormEvent, useState } from "react";
import { ApiError, post } from "../api/client";
import { Field } from "../design/components";
import mark from "../design/mark.svg";

export function SignInPage({ onDone }: { onDone: () => void }) {
  const [isNew, setIsNew] = useState(false);
  const [error, setError] = useState<ApiError>();
  const [busy, setBusy] = useState(false);

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    setBusy(true);
    const body = Object.fromEntries(new FormData(event.currentTarget));
    try {
      await post(isNew ? "/auth/sign-up" : "/auth/sign-in", body);
      onDone();
    } catch (reason) {
      if (!(reason instanceof ApiError)) throw reason;
      setError(reason);
    } finally {
      setBusy(false);
    }
  }

  const fields = error?.fields ?? {};
  return (
    <main className="gate">
      <form className="card" onSubmit={submit}>
        <div className="brand">
          <img src={mark} alt="" />
          Rootstock
        </div>
        <h2>{isNew ? "Make an account" : "Sign in"}</h2>
        <p className="muted small">One copy of the model, every team's adapter grown on it.</p>
        {isNew && <Field name="name" label="Name" autoComplete="name" problem={fields.name} />}
        <Field name="email" label="E-mail" type="email" autoComplete="email" problem={fields.email} />
        <Field name="password" label="Password" type="password" autoComplete={isNew ? "new-password" : "current-password"} hint={isNew ? "Ten characters or more." : undefined} problem={fields.password} />
        {error && Object.keys(fields).length === 0 && <p className="problem" role="alert">{error.message}</p>}
        <button className="button primary" disabled={busy}>{isNew ? "Sign up" : "Sign in"}</button>
        <button type="button" className="button" onClick={() => { setIsNew(!isNew); setError(undefined); }}>
          {isNew ? "I have an account" : "Make an account"}
        </button>
      </form>
    </main>
  );
}

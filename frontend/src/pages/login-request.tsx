/** `prime login` waits in a terminal; here its owner says yes. */
import { useState } from "react";
import { useSearchParams } from "react-router";
import { ApiError, post } from "../api/client";
import { Heading, Problem } from "../design/components";

export function LoginRequestPage() {
  const code = useSearchParams()[0].get("code") ?? "";
  const [error, setError] = useState<ApiError>();
  const [done, setDone] = useState(false);
  const approve = () =>
    post("/auth_challenge/approve", { challenge: code }).then(
      () => setDone(true),
      (reason: unknown) => {
        if (!(reason instanceof ApiError)) throw reason;
        setError(reason);
      },
    );
  return (
    <>
      <Heading title="A terminal asks to sign in" note="Approve it only if you started prime login yourself and it shows this code." />
      <section className="card">
        <pre>{code}</pre>
        <Problem error={error} />
        {done ? <div className="notice good" role="status">Done. Go back to the terminal.</div> : <div><button className="button primary" onClick={() => void approve()}>Approve</button></div>}
      </section>
    </>
  );
}

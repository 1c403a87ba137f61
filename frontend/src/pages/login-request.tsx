/** `prime login` waits in a terminal; here its owner says yes. */
import { useSearchParams } from "react-router";
import { useState } from "react";
import { api } from "../api/client";
import { useAction } from "../api/use-action";
import { Card } from "../design/card";
import { Heading } from "../design/heading";
import { Notice, Problem } from "../design/notice";
import { useSession } from "../session";

export function LoginRequestPage() {
  const { user } = useSession();
  const challenge = useSearchParams()[0].get("code") ?? "";
  const [isDone, setDone] = useState(false);
  const approve = useAction(() => api.post("/api/v1/auth_challenge/approve", { body: { challenge } }), () => setDone(true));
  return (
    <>
      <Heading title="A terminal asks to sign in" note="Approve it only if you started prime login yourself and your terminal shows this code." />
      {challenge ? (
        <Card title="Code">
          <pre><code>{challenge}</code></pre>
          <p className="muted">The terminal gets an API key of {user.email}. It stands on the keys page, where you can revoke it.</p>
          <Problem of={approve.problem} />
          {isDone ? <Notice tone="good">The terminal is signed in. Go back to it.</Notice> : (
            <div><button type="button" className="button primary" disabled={approve.isBusy} onClick={() => void approve.run()}>Approve</button></div>
          )}
        </Card>
      ) : <Notice tone="bad">The address has no code. Run <code>prime login</code> again and open the address that it prints.</Notice>}
    </>
  );
}

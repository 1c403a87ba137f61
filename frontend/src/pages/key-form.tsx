/** Makes a key: what it is for, what it may do, until when. */
import { useState } from "react";
import { type RequestOf, api } from "../api/client";
import type { NewApiKey } from "../api/shapes";
import { useAction } from "../api/use-action";
import { Card } from "../design/card";
import { Field, Form, Select } from "../design/form";

const AREAS = ["environments", "secrets", "datasets", "runs", "evals", "adapters", "inference", "billing", "teams", "keys", "webhooks"] as const;
const RIGHTS = ["read", "write"] as const;
const DAY_MS = 86_400_000;
const LIFETIMES = [["", "Until it is revoked"], ["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["365", "A year"]] as const;

type Asked = RequestOf<"/api/v1/keys", "post">["body"];
type Scope = NonNullable<Asked["scopes"]>[number];
// The compiler holds the list against the document: a scope that the server does not know is an error here.
const SCOPES: Scope[] = AREAS.flatMap((area) => RIGHTS.map((right) => `${area}:${right}` as const));

function read(values: FormData, isLimited: boolean): Asked {
  const days = Number(values.get("lifetime"));
  return {
    name: String(values.get("name") ?? ""),
    scopes: isLimited ? SCOPES.filter((scope) => values.getAll("scope").includes(scope)) : null,
    expires_at: days ? new Date(Date.now() + days * DAY_MS).toISOString() : null,
  };
}

export function NewKey({ onMade }: { onMade: (key: NewApiKey) => void }) {
  const [isLimited, setLimited] = useState(false);
  const make = useAction((body: Asked) => api.post("/api/v1/keys", { body }), onMade);
  const submit = async (values: FormData, form: HTMLFormElement) => {
    if (!(await make.run(read(values, isLimited)))) return;
    form.reset();
    setLimited(false);
  };
  const complaints = make.problem?.fields ?? {};
  return (
    <Card title="New key">
      <Form onSubmit={(values, form) => void submit(values, form)} problem={make.problem} names={["name", "expires_at"]}>
        <div className="fields">
          <Field label="Name" name="name" required maxLength={100} hint="What uses it: a machine, a script." complaint={complaints.name} />
          <Select label="Ends" name="lifetime" options={LIFETIMES} complaint={complaints.expires_at} />
          <Select label="May do" value={isLimited ? "limited" : "all"} options={[["all", "Everything you may do"], ["limited", "Only chosen scopes"]]} onChange={(event) => setLimited(event.currentTarget.value === "limited")} />
        </div>
        {isLimited && <ScopeChoice />}
        <div><button className="button primary" disabled={make.isBusy}>Make a key</button></div>
      </Form>
    </Card>
  );
}

function ScopeChoice() {
  return (
    <fieldset>
      <legend>Scopes</legend>
      <div className="checks">
        {SCOPES.map((scope) => (
          <label key={scope} className="check"><input type="checkbox" name="scope" value={scope} />{scope}</label>
        ))}
      </div>
    </fieldset>
  );
}

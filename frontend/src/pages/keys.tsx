/** API keys: made once, shown once, revoked at once. */
import { type FormEvent, useState } from "react";
import { ApiError, post, remove } from "../api/client";
import type { ApiKey, NewApiKey } from "../api/types";
import { useQuery } from "../api/use-query";
import { Empty, Field, Heading, Problem } from "../design/components";
import { when } from "../design/format";

export function KeysPage() {
  const { data, error, reload } = useQuery<{ items: ApiKey[] }>("/keys");
  const [made, setMade] = useState<NewApiKey>();
  return (
    <>
      <Heading title="Keys" note="For the prime command, the REST API and the OpenAI SDK." />
      <Problem error={error} />
      {made && <div className="notice good" role="status">Copy it now, it is not shown again: <code>{made.key}</code></div>}
      <NewKey onMade={(key) => { setMade(key); reload(); }} />
      <section className="card">
        {data?.items.length === 0 ? <Empty title="No key yet." /> : (
          <div className="table-wrap">
            <table>
              <thead><tr><th>Name</th><th>Begins with</th><th>Made</th><th>Last used</th><th /></tr></thead>
              <tbody>
                {data?.items.map((key) => (
                  <tr key={key.id}>
                    <td>{key.name}</td><td><code>{key.prefix}</code></td><td className="muted">{when(key.created_at)}</td><td className="muted">{when(key.last_used_at)}</td>
                    <td className="number"><button className="button" onClick={() => void remove(`/keys/${key.id}`).then(reload, reload)}>Revoke</button></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </>
  );
}

function NewKey({ onMade }: { onMade: (key: NewApiKey) => void }) {
  const [error, setError] = useState<ApiError>();
  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    try {
      onMade(await post<NewApiKey>("/keys", { name: new FormData(form).get("name") }));
      form.reset();
    } catch (reason) {
      if (!(reason instanceof ApiError)) throw reason;
      setError(reason);
    }
  }
  return (
    <form className="card" onSubmit={submit}>
      <h2>New key</h2>
      <Field name="name" label="What it is for" problem={error?.fields.name ?? error?.message} />
      <div><button className="button primary">Make a key</button></div>
    </form>
  );
}

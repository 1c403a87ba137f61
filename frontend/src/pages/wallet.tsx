/** What the team has, what it spent and on what; top-ups. */
import { type FormEvent, useState } from "react";
import { ApiError, post } from "../api/client";
import type { Wallet } from "../api/types";
import { useQuery } from "../api/use-query";
import { Empty, Field, Heading, Loading, Problem, Stat } from "../design/components";
import { dollars, when } from "../design/format";

export function WalletPage() {
  const { data, error, reload } = useQuery<Wallet>("/billing/wallet?limit=100", 5000);
  if (!data) return error ? <Problem error={error} /> : <Loading what="the wallet" />;
  return (
    <>
      <Heading title="Wallet" note="Tokens, sandbox seconds and judge calls, one bill." />
      <div className="grid">
        <Stat value={dollars(data.balance_usd)} label="balance" />
        <Stat value={data.total_billings} label="billed items" />
      </div>
      <TopUp onDone={reload} />
      <section className="card">
        <h2>Spent on</h2>
        {data.recent_billings.length === 0 ? <Empty title="Nothing was billed yet." /> : (
          <div className="table-wrap">
            <table>
              <thead><tr><th>What</th><th>Which</th><th>Last billed</th><th className="number">Amount</th></tr></thead>
              <tbody>
                {data.recent_billings.map((row) => (
                  <tr key={row.id}><td>{row.resource_type.replaceAll("_", " ")}</td><td><code>{row.resource_id}</code></td><td className="muted">{when(row.last_billed_at)}</td><td className="number">{dollars(row.amount_usd)}</td></tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </>
  );
}

function TopUp({ onDone }: { onDone: () => void }) {
  const [error, setError] = useState<ApiError>();
  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    try {
      await post("/billing/top-ups", { amount_usd: String(new FormData(form).get("amount_usd")) });
      form.reset();
      setError(undefined);
      onDone();
    } catch (reason) {
      if (!(reason instanceof ApiError)) throw reason;
      setError(reason);
    }
  }
  return (
    <form className="card" onSubmit={submit}>
      <h2>Top up</h2>
      <Field name="amount_usd" label="Amount in US dollars" type="number" problem={error?.fields.amount_usd ?? error?.message} />
      <div><button className="button primary">Add to the wallet</button></div>
    </form>
  );
}

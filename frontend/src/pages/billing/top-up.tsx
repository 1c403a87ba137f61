/** Pays money in. An attempt that is repeated after a lost answer pays once: it carries the same key. */
import { useState } from "react";
import { api } from "../../api/client";
import { useAction } from "../../api/use-action";
import { Dialog } from "../../design/dialog";
import { Field, Form } from "../../design/form";
import { microDollars } from "../../design/format";
import { useToast } from "../../design/toast";
import { useSession } from "../../session";

export function TopUp({ onDone }: { onDone: () => void }) {
  const { isAdmin } = useSession();
  const [isOpen, setOpen] = useState(false);
  if (!isAdmin) return <span className="muted small">Only an admin of the team tops up.</span>;
  return (
    <>
      <button type="button" className="button primary" onClick={() => setOpen(true)}>Top up</button>
      {isOpen && <TopUpDialog onDone={onDone} onClose={() => setOpen(false)} />}
    </>
  );
}

function TopUpDialog({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const say = useToast();
  const [key] = useState(() => crypto.getRandomValues(new Uint32Array(4)).join("-"));
  const pay = useAction(
    (amount_usd: string) => api.post("/api/v1/billing/top-ups", { body: { amount_usd }, once: `${key}-${amount_usd}` }),
    (done) => {
      say(`${microDollars(done.amount_microusd)} added. ${done.notice}`);
      onDone();
      onClose();
    },
  );
  return (
    <Dialog title="Top up the wallet" onClose={onClose}>
      <Form onSubmit={(values) => void pay.run(String(values.get("amount_usd")))} problem={pay.problem} names={["amount_usd"]}>
        <Field label="Amount in US dollars" name="amount_usd" type="number" min="0.000001" step="any" inputMode="decimal" required autoFocus complaint={pay.problem?.fields.amount_usd} />
        <div className="dialog-actions">
          <button type="button" className="button" onClick={onClose}>Cancel</button>
          <button className="button primary" disabled={pay.isBusy}>Add to the wallet</button>
        </div>
      </Form>
    </Dialog>
  );
}

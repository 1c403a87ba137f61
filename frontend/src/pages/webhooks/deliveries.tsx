/** What was or is to be sent to one webhook, newest first; a test, and sending again. */
import { useState } from "react";
import { api } from "../../api/client";
import type { Webhook, WebhookDelivery } from "../../api/shapes";
import { useAction } from "../../api/use-action";
import { useQuery } from "../../api/use-query";
import { Badge } from "../../design/badge";
import { Card } from "../../design/card";
import { Dialog } from "../../design/dialog";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Age } from "../../design/time";
import { when } from "../../design/format";

const REFRESH_MS = 3_000;
const SHOWN = 20;
const TONES = { PENDING: "wait", DELIVERED: "good", FAILED: "bad" } as const;

export function Deliveries({ webhook }: { webhook: Webhook }) {
  const query = useQuery("/api/v1/webhooks/{webhook_id}/deliveries", { path: { webhook_id: webhook.id }, query: { limit: SHOWN } }, REFRESH_MS);
  const [open, setOpen] = useState<WebhookDelivery>();
  const columns: Column<WebhookDelivery>[] = [
    { name: "Event", cell: (row) => <code>{row.event_type}</code> },
    { name: "State", cell: (row) => <Badge tone={TONES[row.state]}>{row.state.toLowerCase()}</Badge> },
    { name: "Attempts", kind: "number", cell: (row) => row.attempts },
    { name: "Answer", cell: (row) => row.response_status ?? (row.error || "—") },
    { name: "When", cell: (row) => <Age of={row.created_at} /> },
    { name: "Next attempt", cell: (row) => (row.next_attempt_at ? when(row.next_attempt_at) : "—") },
    {
      name: "Actions",
      kind: "actions",
      cell: (row) => (
        <span className="row">
          <button type="button" className="button slim" onClick={() => setOpen(row)}>Look</button>
          {row.state !== "PENDING" && webhook.is_enabled && <Redeliver webhookId={webhook.id} deliveryId={row.id} onDone={query.reload} />}
        </span>
      ),
    },
  ];
  return (
    <Card title="Deliveries" note={`The newest ${SHOWN} to ${webhook.url}`} actions={webhook.is_enabled ? <Test webhookId={webhook.id} onDone={query.reload} /> : undefined}>
      <Problem of={query.problem} />
      {!query.data && !query.problem && <Skeleton what="deliveries" />}
      {query.data && !query.data.items.length && <p>Nothing yet.</p>}
      {query.data && query.data.items.length > 0 && <Table caption="Deliveries" columns={columns} rows={query.data.items} rowKey={(row) => row.id} />}
      {open && <Look delivery={open} onClose={() => setOpen(undefined)} />}
    </Card>
  );
}

function Look({ delivery, onClose }: { delivery: WebhookDelivery; onClose: () => void }) {
  return (
    <Dialog title={delivery.event_type} onClose={onClose}>
      <div className="stack">
        <p className="muted"><code>{delivery.event_id}</code></p>
        <pre tabIndex={0}><code>{JSON.stringify(JSON.parse(delivery.body), null, 2)}</code></pre>
        {delivery.response_status !== null && <p>The last answer was {delivery.response_status}, after {delivery.duration_ms} ms.</p>}
        {delivery.error && <p>{delivery.error}</p>}
        {delivery.response_text && <pre tabIndex={0}><code>{delivery.response_text}</code></pre>}
      </div>
      <div className="dialog-actions"><button type="button" className="button" onClick={onClose}>Close</button></div>
    </Dialog>
  );
}

function Test({ webhookId, onDone }: { webhookId: string; onDone: () => void }) {
  const test = useAction(() => api.post("/api/v1/webhooks/{webhook_id}/test", { path: { webhook_id: webhookId } }), onDone);
  return (
    <>
      <Problem of={test.problem} />
      <button type="button" className="button slim" disabled={test.isBusy} onClick={() => void test.run()}>Send a test</button>
    </>
  );
}

function Redeliver({ webhookId, deliveryId, onDone }: { webhookId: string; deliveryId: string; onDone: () => void }) {
  const send = useAction(
    () => api.post("/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", { path: { webhook_id: webhookId, delivery_id: deliveryId } }),
    onDone,
  );
  return <button type="button" className="button slim" disabled={send.isBusy} onClick={() => void send.run()}>Send again</button>;
}

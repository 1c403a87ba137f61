/** Addresses that are told what happened: made and changed here, with what was sent to each. A secret is shown once. */
import { useState } from "react";
import { api } from "../../api/client";
import type { Webhook, WebhookSecret } from "../../api/shapes";
import { useAction } from "../../api/use-action";
import { useQuery } from "../../api/use-query";
import { Badge } from "../../design/badge";
import { Card } from "../../design/card";
import { Command } from "../../design/command";
import { ConfirmButton } from "../../design/dialog";
import { Empty } from "../../design/empty";
import { Notice, Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { useToast } from "../../design/toast";
import { Deliveries } from "../webhooks/deliveries";
import { NewWebhook } from "../webhooks/webhook-form";

export function WebhooksPanel() {
  const query = useQuery("/api/v1/webhooks", {});
  const [told, setTold] = useState<WebhookSecret>();
  const [shownId, setShownId] = useState<string>();
  const take = (answer: WebhookSecret) => {
    setTold(answer);
    query.reload();
  };
  const rows = query.data?.webhooks ?? [];
  const shown = rows.find((row) => row.id === shownId);
  return (
    <>
      {told && (
        <Notice tone="good" title="Copy the secret now: it is not shown again.">
          <Command text={told.secret} label={told.webhook.url} />
        </Notice>
      )}
      <Card>
        <p className="muted">Each is sent what it wants to know of, signed, until it is heard. Receivers verify the signature with the secret.</p>
        <Problem of={query.problem} />
        {!query.data && !query.problem && <Skeleton what="webhooks" />}
        {query.data && !rows.length && <Empty title="No webhooks yet." command="prime webhook create https://…" />}
        {rows.length > 0 && <Webhooks rows={rows} shownId={shownId} onShow={setShownId} onSecret={take} onChange={query.reload} />}
      </Card>
      {shown && <Deliveries key={shown.id} webhook={shown} />}
      <NewWebhook onMade={take} />
    </>
  );
}

interface Listed {
  rows: Webhook[];
  shownId: string | undefined;
  onShow: (id: string | undefined) => void;
  onSecret: (answer: WebhookSecret) => void;
  onChange: () => void;
}

function Webhooks({ rows, shownId, onShow, onSecret, onChange }: Listed) {
  const columns: Column<Webhook>[] = [
    { name: "Address", sortBy: (row) => row.url, cell: (row) => <><code>{row.url}</code>{row.description && <div className="muted small">{row.description}</div>}</> },
    { name: "Events", cell: (row) => (row.event_types.length ? <span className="row">{row.event_types.map((event) => <Badge key={event} isPlain>{event}</Badge>)}</span> : <span className="muted">all</span>) },
    { name: "State", cell: (row) => <WebhookState of={row} /> },
    {
      name: "Actions",
      kind: "actions",
      cell: (row) => (
        <span className="row">
          <button type="button" className="button slim" aria-pressed={row.id === shownId} onClick={() => onShow(row.id === shownId ? undefined : row.id)}>Deliveries</button>
          <Switch webhook={row} onDone={onChange} />
          <Rotate webhook={row} onSecret={onSecret} />
          <Delete webhook={row} onBegin={() => row.id === shownId && onShow(undefined)} onDone={onChange} />
        </span>
      ),
    },
  ];
  return <Table caption="Webhooks of the team" columns={columns} rows={rows} rowKey={(row) => row.id} />;
}

function WebhookState({ of: row }: { of: Webhook }) {
  if (row.is_enabled) return row.failing_since ? <Badge tone="wait">failing</Badge> : <Badge tone="good">enabled</Badge>;
  return <><Badge tone={row.disabled_reason ? "bad" : ""}>disabled</Badge>{row.disabled_reason && <div className="muted small">{row.disabled_reason}</div>}</>;
}

function Switch({ webhook, onDone }: { webhook: Webhook; onDone: () => void }) {
  const say = useToast();
  const turn = useAction(
    () => api.patch("/api/v1/webhooks/{webhook_id}", { path: { webhook_id: webhook.id }, body: { is_enabled: !webhook.is_enabled } }),
    (answer) => {
      say(answer.webhook.is_enabled ? "It is sent events again." : "Nothing more is sent to it.");
      onDone();
    },
  );
  return <button type="button" className="button slim" disabled={turn.isBusy} onClick={() => void turn.run()}>{webhook.is_enabled ? "Disable" : "Enable"}</button>;
}

function Rotate({ webhook, onSecret }: { webhook: Webhook; onSecret: (answer: WebhookSecret) => void }) {
  const rotate = useAction(() => api.post("/api/v1/webhooks/{webhook_id}/rotate", { path: { webhook_id: webhook.id }, body: { overlap_hours: 24 } }), onSecret);
  return (
    <ConfirmButton label="New secret" title="Sign with a new secret?" action={rotate} isSlim>
      <p>For a day the present one signs as well, so that the receiver can change over.</p>
    </ConfirmButton>
  );
}

/** `onBegin` closes what asks again and again about a webhook that is about to be gone. */
function Delete({ webhook, onBegin, onDone }: { webhook: Webhook; onBegin: () => void; onDone: () => void }) {
  const say = useToast();
  const remove = useAction(
    () => {
      onBegin();
      return api.delete("/api/v1/webhooks/{webhook_id}", { path: { webhook_id: webhook.id } });
    },
    () => {
      say("The webhook is deleted.");
      onDone();
    },
  );
  return (
    <ConfirmButton label="Delete" title="Delete the webhook?" action={remove} isDanger isSlim>
      <p><code>{webhook.url}</code> is told nothing more. What is pending for it goes, too.</p>
    </ConfirmButton>
  );
}

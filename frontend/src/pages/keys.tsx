/** API keys: made once, shown once, revoked at once. */
import { useState } from "react";
import { api } from "../api/client";
import type { ApiKey, NewApiKey } from "../api/shapes";
import { useAction } from "../api/use-action";
import { useQuery } from "../api/use-query";
import { Badge } from "../design/badge";
import { Card } from "../design/card";
import { Command } from "../design/command";
import { ConfirmButton } from "../design/dialog";
import { Empty } from "../design/empty";
import { Heading } from "../design/heading";
import { Notice, Problem } from "../design/notice";
import { Skeleton } from "../design/skeleton";
import { type Column, Table } from "../design/table";
import { Age } from "../design/time";
import { useToast } from "../design/toast";
import { when } from "../design/format";
import { NewKey } from "./key-form";

export function KeysPage() {
  const { data, problem, reload } = useQuery("/api/v1/keys", {});
  const [made, setMade] = useState<NewApiKey>();
  const take = (key: NewApiKey) => {
    setMade(key);
    reload();
  };
  return (
    <>
      <Heading title="Keys" note="For the prime command, the REST API and the OpenAI SDK. A key acts as you, within its scopes." />
      {made && (
        <Notice tone="good" title={`The key “${made.name}” is made. Copy it now: it is not shown again.`}>
          <Command text={made.key} label="API key" />
        </Notice>
      )}
      <Card title="Live keys">
        <Problem of={problem} />
        {!data && !problem && <Skeleton what="keys" />}
        {data?.items.length === 0 && <Empty title="You have no live key." command="prime login" />}
        {data && data.items.length > 0 && <Keys keys={data.items} onChange={reload} />}
      </Card>
      <NewKey onMade={take} />
    </>
  );
}

function Keys({ keys, onChange }: { keys: ApiKey[]; onChange: () => void }) {
  const columns: Column<ApiKey>[] = [
    { name: "Name", sortBy: (key) => key.name, cell: (key) => key.name },
    { name: "Begins with", cell: (key) => <code>{key.prefix}</code> },
    { name: "Scopes", cell: (key) => <Scopes of={key.scopes} /> },
    { name: "Last used", sortBy: (key) => key.last_used_at, cell: (key) => (key.last_used_at ? <Age of={key.last_used_at} /> : <span className="muted">never</span>) },
    { name: "Ends", sortBy: (key) => key.expires_at, cell: (key) => <span className="muted nowrap">{key.expires_at ? when(key.expires_at) : "when revoked"}</span> },
    { name: "Revoke", kind: "actions", cell: (key) => <Revoke apiKey={key} onDone={onChange} /> },
  ];
  return <Table caption="Live keys" columns={columns} rows={keys} rowKey={(key) => key.id} />;
}

function Scopes({ of: scopes }: { of: string[] | null }) {
  if (scopes === null) return <span className="muted">everything you may do</span>;
  return <span className="row">{scopes.map((scope) => <Badge key={scope} isPlain>{scope}</Badge>)}</span>;
}

function Revoke({ apiKey, onDone }: { apiKey: ApiKey; onDone: () => void }) {
  const say = useToast();
  const revoke = useAction(
    () => api.delete("/api/v1/keys/{key_id}", { path: { key_id: apiKey.id } }),
    () => {
      say(`The key “${apiKey.name}” is revoked.`);
      onDone();
    },
  );
  return (
    <ConfirmButton label="Revoke" title={`Revoke “${apiKey.name}”?`} action={revoke} isDanger isSlim>
      <p>Whatever uses <code>{apiKey.prefix}…</code> is refused from the next request on. This cannot be undone.</p>
    </ConfirmButton>
  );
}

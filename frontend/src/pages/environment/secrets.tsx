/** What the viewer's team has set for an environment: secrets of its own, linked ones of the team, and variables. */
import { api } from "../../api/client";
import type { EnvironmentSecret, Variable } from "../../api/shapes";
import { useAction } from "../../api/use-action";
import { useQuery } from "../../api/use-query";
import { Badge } from "../../design/badge";
import { Card } from "../../design/card";
import { ConfirmButton } from "../../design/dialog";
import { Form, Select } from "../../design/form";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Age } from "../../design/time";
import { useToast } from "../../design/toast";
import { type NewValue, ValueForm } from "../secrets/value-form";

interface Placed {
  environmentId: string;
  onDone: () => void;
}

export function SecretsPanel({ environmentId }: { environmentId: string }) {
  return (
    <>
      <Secrets environmentId={environmentId} />
      <Variables environmentId={environmentId} />
    </>
  );
}

function Secrets({ environmentId }: { environmentId: string }) {
  const query = useQuery("/api/v1/environmentshub/{environment_id}/secrets", { path: { environment_id: environmentId } });
  const columns: Column<EnvironmentSecret>[] = [
    { name: "Name", sortBy: (row) => row.name, cell: (row) => <><code>{row.name}</code> {row.source === "global" && <Badge isPlain>of the team</Badge>}</> },
    { name: "Description", cell: (row) => row.description || "—" },
    { name: "Changed", sortBy: (row) => row.updatedAt, cell: (row) => <Age of={row.updatedAt} /> },
    { name: "Last used", sortBy: (row) => row.lastUsedAt ?? "", cell: (row) => (row.lastUsedAt ? <Age of={row.lastUsedAt} /> : "never") },
    { name: "Actions", kind: "actions", cell: (row) => <RemoveSecret secret={row} environmentId={environmentId} onDone={query.reload} /> },
  ];
  const linked = query.data?.data.filter((row) => row.source === "global").map((row) => row.id) ?? [];
  return (
    <Card title="Secrets">
      <p className="muted">Your team's runs and evaluations on this environment get them as environment variables, from the next sandbox on. Nobody else's do.</p>
      <Problem of={query.problem} />
      {query.data && !query.data.data.length && <p>No secrets yet.</p>}
      {query.data && query.data.data.length > 0 && <Table caption="Secrets of the environment" columns={columns} rows={query.data.data} rowKey={(row) => row.id} />}
      {!query.data && !query.problem && <Skeleton what="secrets" />}
      <LinkSecret environmentId={environmentId} linked={linked} onDone={query.reload} />
      <NewSecret environmentId={environmentId} onDone={query.reload} />
    </Card>
  );
}

function NewSecret({ environmentId, onDone }: Placed) {
  const say = useToast();
  const make = useAction(
    (body: NewValue) => api.post("/api/v1/environmentshub/{environment_id}/secrets", { path: { environment_id: environmentId }, body }),
    (answer) => {
      say(`${answer.data.name} is kept.`);
      onDone();
    },
  );
  return <ValueForm what="secret" problem={make.problem} isBusy={make.isBusy} onSubmit={make.run} />;
}

function LinkSecret({ environmentId, linked, onDone }: Placed & { linked: string[] }) {
  const say = useToast();
  const ours = useQuery("/api/v1/secrets", { query: { limit: 1000 } });
  const free = ours.data?.data.filter((row) => !linked.includes(row.id)) ?? [];
  const link = useAction(
    (id: string) => api.post("/api/v1/environmentshub/{environment_id}/secrets/link/{secret_id}", { path: { environment_id: environmentId, secret_id: id } }),
    (answer) => {
      say(`${answer.data.secretName} is linked.`);
      onDone();
    },
  );
  if (!free.length) return null;
  return (
    <Form onSubmit={(values) => void link.run(String(values.get("secret")))} problem={link.problem} names={[]}>
      <div className="fields">
        <Select label="A secret of the team" name="secret" options={free.map((row) => [row.id, row.name] as const)} />
      </div>
      <div><button className="button" disabled={link.isBusy}>Link it</button></div>
    </Form>
  );
}

function RemoveSecret({ secret, environmentId, onDone }: Placed & { secret: EnvironmentSecret }) {
  const say = useToast();
  const isLinked = secret.source === "global";
  const remove = useAction(
    () =>
      isLinked
        ? api.delete("/api/v1/environmentshub/{environment_id}/secrets/link/{secret_id}", { path: { environment_id: environmentId, secret_id: secret.id } })
        : api.delete("/api/v1/environmentshub/{environment_id}/secrets/{environment_secret_id}", { path: { environment_id: environmentId, environment_secret_id: secret.id } }),
    () => {
      say(`${secret.name} is ${isLinked ? "unlinked" : "deleted"}.`);
      onDone();
    },
  );
  return (
    <ConfirmButton label={isLinked ? "Unlink" : "Delete"} title={`${isLinked ? "Unlink" : "Delete"} ${secret.name}?`} action={remove} isDanger isSlim>
      <p>{isLinked ? "The team keeps it." : "Its value cannot be had back."} Sandboxes that are running keep it until they end.</p>
    </ConfirmButton>
  );
}

function Variables({ environmentId }: { environmentId: string }) {
  const query = useQuery("/api/v1/environmentshub/{environment_id}/variables", { path: { environment_id: environmentId } });
  const say = useToast();
  const make = useAction(
    (body: NewValue) => api.post("/api/v1/environmentshub/{environment_id}/variables", { path: { environment_id: environmentId }, body }),
    (answer) => {
      say(`${answer.data.name} is set.`);
      query.reload();
    },
  );
  const columns: Column<Variable>[] = [
    { name: "Name", sortBy: (row) => row.name, cell: (row) => <code>{row.name}</code> },
    { name: "Value", cell: (row) => <code>{row.value}</code> },
    { name: "Description", cell: (row) => row.description || "—" },
    { name: "Changed", sortBy: (row) => row.updatedAt, cell: (row) => <Age of={row.updatedAt} /> },
    { name: "Actions", kind: "actions", cell: (row) => <RemoveVariable variable={row} environmentId={environmentId} onDone={query.reload} /> },
  ];
  return (
    <Card title="Variables">
      <p className="muted">No secrets: they are shown, and not masked.</p>
      <Problem of={query.problem} />
      {query.data && !query.data.data.length && <p>No variables yet.</p>}
      {query.data && query.data.data.length > 0 && <Table caption="Variables of the environment" columns={columns} rows={query.data.data} rowKey={(row) => row.id} />}
      {!query.data && !query.problem && <Skeleton what="variables" />}
      <ValueForm what="variable" problem={make.problem} isBusy={make.isBusy} onSubmit={make.run} />
    </Card>
  );
}

function RemoveVariable({ variable, environmentId, onDone }: Placed & { variable: Variable }) {
  const say = useToast();
  const remove = useAction(
    () => api.delete("/api/v1/environmentshub/{environment_id}/variables/{variable_id}", { path: { environment_id: environmentId, variable_id: variable.id } }),
    () => {
      say(`${variable.name} is deleted.`);
      onDone();
    },
  );
  return (
    <ConfirmButton label="Delete" title={`Delete ${variable.name}?`} action={remove} isDanger isSlim>
      <p>Sandboxes that start from now on do without it.</p>
    </ConfirmButton>
  );
}

/** The team's secrets, which its environments are linked to. Values are written here and never read. */
import { api } from "../../api/client";
import type { TeamSecret } from "../../api/shapes";
import { useAction } from "../../api/use-action";
import { useQuery } from "../../api/use-query";
import { Card } from "../../design/card";
import { ConfirmButton } from "../../design/dialog";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Age } from "../../design/time";
import { useToast } from "../../design/toast";
import { type NewValue, ValueForm } from "../secrets/value-form";

export function SecretsPanel() {
  const query = useQuery("/api/v1/secrets", { query: { limit: 1000 } });
  const columns: Column<TeamSecret>[] = [
    { name: "Name", sortBy: (row) => row.name, cell: (row) => <code>{row.name}</code> },
    { name: "Description", cell: (row) => row.description || "—" },
    { name: "Environments", kind: "number", sortBy: (row) => row.environmentsCount, cell: (row) => row.environmentsCount },
    { name: "Changed", sortBy: (row) => row.updatedAt, cell: (row) => <Age of={row.updatedAt} /> },
    { name: "Last used", sortBy: (row) => row.lastUsedAt ?? "", cell: (row) => (row.lastUsedAt ? <Age of={row.lastUsedAt} /> : "never") },
    { name: "Actions", kind: "actions", cell: (row) => <DeleteSecret secret={row} onDone={query.reload} /> },
  ];
  return (
    <>
      <Card>
        <p className="muted">An environment gets those that are linked to it, on its own page. Only sandboxes of this team's runs and evaluations see them.</p>
        <Problem of={query.problem} />
        {query.data && !query.data.data.length && <p>No secrets yet.</p>}
      {query.data && query.data.data.length > 0 && <Table caption="Secrets of the team" columns={columns} rows={query.data.data} rowKey={(row) => row.id} />}
      {!query.data && !query.problem && <Skeleton what="secrets" />}
      </Card>
      <NewSecret onDone={query.reload} />
    </>
  );
}

function NewSecret({ onDone }: { onDone: () => void }) {
  const say = useToast();
  const make = useAction(
    (body: NewValue) => api.post("/api/v1/secrets", { body: { ...body, isFile: false } }),
    (answer) => {
      say(`${answer.data.name} is kept.`);
      onDone();
    },
  );
  return (
    <Card title="New secret">
      <ValueForm what="secret" problem={make.problem} isBusy={make.isBusy} onSubmit={make.run} />
    </Card>
  );
}

function DeleteSecret({ secret, onDone }: { secret: TeamSecret; onDone: () => void }) {
  const say = useToast();
  const remove = useAction(
    () => api.delete("/api/v1/secrets/{secret_id}", { path: { secret_id: secret.id } }),
    () => {
      say(`${secret.name} is deleted.`);
      onDone();
    },
  );
  return (
    <ConfirmButton label="Delete" title={`Delete ${secret.name}?`} action={remove} isDanger isSlim>
      <p>{secret.environmentsCount ? `${secret.environmentsCount} linked environments lose it` : "No environment is linked to it"}. Sandboxes that are running keep it until they end.</p>
    </ConfirmButton>
  );
}

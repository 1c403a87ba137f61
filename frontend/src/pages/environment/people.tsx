/** Who beside the owning team may push releases; the team invites and removes. */
import { api } from "../../api/client";
import type { Collaborator } from "../../api/shapes";
import { useAction } from "../../api/use-action";
import { useQuery } from "../../api/use-query";
import { Card } from "../../design/card";
import { ConfirmButton } from "../../design/dialog";
import { Empty } from "../../design/empty";
import { Field, Form } from "../../design/form";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Age } from "../../design/time";
import { useToast } from "../../design/toast";

interface Place {
  owner: string;
  name: string;
}

export function PeoplePanel({ owner, name, isOwner }: Place & { isOwner: boolean }) {
  const query = useQuery("/api/v1/environmentshub/{owner}/{name}/collaborators", { path: { owner, name } });
  const columns: Column<Collaborator>[] = [
    { name: "User", sortBy: (row) => row.user, cell: (row) => row.user },
    { name: "Invited", sortBy: (row) => row.invited_at, cell: (row) => <Age of={row.invited_at} /> },
    ...(isOwner ? [{ name: "Actions", kind: "actions" as const, cell: (row: Collaborator) => <Remove owner={owner} name={name} user={row.user} onDone={query.reload} /> }] : []),
  ];
  const rows = query.data?.data.collaborators;
  return (
    <>
      <Card title="Collaborators">
        <p className="muted">Members of the owning team may do everything. A collaborator belongs to another team and may read this environment and push releases of it.</p>
        <Problem of={query.problem} />
        {!rows && !query.problem && <Skeleton what="collaborators" />}
        {rows && (rows.length ? <Table caption="Collaborators" columns={columns} rows={rows} rowKey={(row) => row.user} /> : <Empty title="Nobody beside the team." />)}
      </Card>
      {isOwner && <Invite owner={owner} name={name} onDone={query.reload} />}
    </>
  );
}

function Invite({ owner, name, onDone }: Place & { onDone: () => void }) {
  const say = useToast();
  const invite = useAction(
    (user: string) => api.post("/api/v1/environmentshub/{owner}/{name}/collaborators", { path: { owner, name }, body: { user } }),
    () => {
      say("They may push now.");
      onDone();
    },
  );
  const submit = async (values: FormData, form: HTMLFormElement) => {
    if (await invite.run(String(values.get("user")))) form.reset();
  };
  return (
    <Card title="Invite a collaborator">
      <Form onSubmit={(values, form) => void submit(values, form)} problem={invite.problem} names={["user"]}>
        <Field label="User" name="user" required maxLength={64} hint="Their public name: that of their personal team." complaint={invite.problem?.fields.user} />
        <div><button className="button primary" disabled={invite.isBusy}>Invite</button></div>
      </Form>
    </Card>
  );
}

function Remove({ owner, name, user, onDone }: Place & { user: string; onDone: () => void }) {
  const remove = useAction(() => api.delete("/api/v1/environmentshub/{owner}/{name}/collaborators/{collaborator}", { path: { owner, name, collaborator: user } }), onDone);
  return (
    <ConfirmButton label="Remove" title={`Remove ${user}?`} action={remove} isSlim isDanger>
      <p>They can no longer read or push it. Their releases stay.</p>
    </ConfirmButton>
  );
}

/** Members with their roles: added, changed and taken out by admins; everybody may leave. */
import { api } from "../../api/client";
import type { Member } from "../../api/shapes";
import { useAction } from "../../api/use-action";
import { useQuery } from "../../api/use-query";
import { Badge } from "../../design/badge";
import { Card } from "../../design/card";
import { ConfirmButton } from "../../design/dialog";
import { Field, Form, Select } from "../../design/form";
import { Notice, Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";
import { Age } from "../../design/time";
import { useToast } from "../../design/toast";
import { useSession } from "../../session";

const ROLES = [["MEMBER", "Member"], ["ADMIN", "Admin"]] as const;
type Role = (typeof ROLES)[number][0];

export function MembersPanel() {
  const { team, isAdmin, user, reload } = useSession();
  const query = useQuery("/api/v1/teams/{team_id}/members", { path: { team_id: team.id }, query: { limit: 500 } });
  const canManage = isAdmin && !team.is_personal;
  const columns: Column<Member>[] = [
    { name: "Name", sortBy: (row) => row.userName, cell: (row) => <>{row.userName || "—"} {row.userId === user.id && <Badge isPlain>you</Badge>}</> },
    { name: "E-mail", sortBy: (row) => row.userEmail, cell: (row) => row.userEmail },
    { name: "Role", sortBy: (row) => row.role, cell: (row) => (row.role === "ADMIN" ? "Admin" : "Member") },
    { name: "Joined", sortBy: (row) => row.joinedAt, cell: (row) => <Age of={row.joinedAt} /> },
    ...(team.is_personal ? [] : [{ name: "Actions", kind: "actions" as const, cell: (row: Member) => <MemberActions member={row} canManage={canManage} onDone={row.userId === user.id ? reload : query.reload} /> }]),
  ];
  return (
    <>
      <Card>
        <Problem of={query.problem} />
        {query.data ? <Table caption="Members" columns={columns} rows={query.data.data} rowKey={(row) => row.userId} /> : !query.problem && <Skeleton what="members" />}
      </Card>
      {canManage && <AddMember onDone={query.reload} />}
      {team.is_personal && <Notice>A personal team has one member. Make a shared team under Settings to work together.</Notice>}
    </>
  );
}

function AddMember({ onDone }: { onDone: () => void }) {
  const { team } = useSession();
  const say = useToast();
  const add = useAction(
    (body: { email: string; role: Role }) => api.post("/api/v1/teams/{team_id}/members", { path: { team_id: team.id }, body }),
    (answer) => {
      say(`${answer.data.userEmail} is in the team.`);
      onDone();
    },
  );
  const submit = async (values: FormData, form: HTMLFormElement) => {
    if (await add.run({ email: String(values.get("email")), role: values.get("role") === "ADMIN" ? "ADMIN" : "MEMBER" })) form.reset();
  };
  return (
    <Card title="Add a member">
      <Form onSubmit={(values, form) => void submit(values, form)} problem={add.problem} names={["email"]}>
        <div className="fields">
          <Field label="E-mail" name="email" type="email" required hint="They have signed up before." complaint={add.problem?.fields.email} />
          <Select label="Role" name="role" options={ROLES} hint="An admin tops up and manages members." />
        </div>
        <div><button className="button primary" disabled={add.isBusy}>Add</button></div>
      </Form>
    </Card>
  );
}

function MemberActions({ member, canManage, onDone }: { member: Member; canManage: boolean; onDone: () => void }) {
  const { team, user } = useSession();
  const say = useToast();
  const isSelf = member.userId === user.id;
  const done = (text: string) => () => {
    say(text);
    onDone();
  };
  const other: Role = member.role === "ADMIN" ? "MEMBER" : "ADMIN";
  const change = useAction(() => api.post("/api/v1/teams/{team_id}/members", { path: { team_id: team.id }, body: { email: member.userEmail, role: other } }), done("The role is changed."));
  const remove = useAction(() => api.delete("/api/v1/teams/{team_id}/members/{user_id}", { path: { team_id: team.id, user_id: member.userId } }), done(isSelf ? "You have left the team." : `${member.userEmail} is out of the team.`));
  return (
    <span className="row end">
      {canManage && (
        <ConfirmButton label={other === "ADMIN" ? "Make admin" : "Make member"} title={`Change the role of ${member.userEmail}?`} action={change} isSlim>
          <p>{other === "ADMIN" ? "An admin manages members, tops up and sees the activity." : "A member keeps working with runs and models, and manages nobody."}</p>
        </ConfirmButton>
      )}
      {(canManage || isSelf) && (
        <ConfirmButton label={isSelf ? "Leave" : "Remove"} title={isSelf ? `Leave ${team.name}?` : `Remove ${member.userEmail}?`} action={remove} isDanger isSlim>
          <p>{isSelf ? "You see nothing of the team from now on. An admin can add you again." : "They see nothing of the team from now on. You can add them again."}</p>
        </ConfirmButton>
      )}
    </span>
  );
}

/** A new shared team, and the user's public name. */
import { api } from "../../api/client";
import { useAction } from "../../api/use-action";
import { Card } from "../../design/card";
import { Field, Form } from "../../design/form";
import { useToast } from "../../design/toast";
import { useSession } from "../../session";

export function SettingsPanel() {
  return (
    <div className="columns">
      <NewTeam />
      <PublicName />
    </div>
  );
}

function NewTeam() {
  const { reload, chooseTeam } = useSession();
  const say = useToast();
  const make = useAction(
    (body: { name: string; slug: string }) => api.post("/api/v1/teams", { body }),
    (answer) => {
      say(`The team ${answer.data.name} is made. You act for it now.`);
      chooseTeam(answer.data.id);
      reload();
    },
  );
  const submit = (values: FormData) => void make.run({ name: String(values.get("name")), slug: String(values.get("slug") ?? "") });
  return (
    <Card title="New shared team" note="With its own wallet, environments, runs and members. You are its first admin.">
      <Form onSubmit={submit} problem={make.problem} names={["name", "slug"]}>
        <Field label="Name" name="name" required maxLength={100} complaint={make.problem?.fields.name} />
        <Field label="Owner name" name="slug" maxLength={64} hint="Stands before the names of its environments. Left empty, it is made from the name." complaint={make.problem?.fields.slug} />
        <div><button className="button primary" disabled={make.isBusy}>Make the team</button></div>
      </Form>
    </Card>
  );
}

function PublicName() {
  const { user, reload } = useSession();
  const say = useToast();
  const change = useAction(
    (slug: string) => api.patch("/api/v1/user/slug", { body: { slug } }),
    (answer) => {
      say(`Your owner name is ${answer.data.slug}.`);
      reload();
    },
  );
  return (
    <Card title="Your owner name" note="Environments of your personal team are named owner/name. Addresses with the old name end.">
      <Form onSubmit={(values) => void change.run(String(values.get("slug")))} problem={change.problem} names={["slug"]}>
        <Field label="Owner name" name="slug" required defaultValue={user.slug} maxLength={64} complaint={change.problem?.fields.slug} />
        <div><button className="button" disabled={change.isBusy}>Change</button></div>
      </Form>
    </Card>
  );
}

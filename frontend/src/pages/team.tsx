/** Who is in the team, its secrets and webhooks, the user's own name, new teams, and what was done by whom. */
import { useSearchParams } from "react-router";
import { Heading } from "../design/heading";
import { Tabs } from "../design/tabs";
import { useSession } from "../session";
import { ActivityPanel } from "./team/activity";
import { MembersPanel } from "./team/members";
import { SecretsPanel } from "./team/secrets";
import { SettingsPanel } from "./team/settings";
import { WebhooksPanel } from "./team/webhooks";

export function TeamPage() {
  const { team, isAdmin } = useSession();
  const [search, setSearch] = useSearchParams();
  const tabs = [
    { id: "members", label: "Members", panel: () => <MembersPanel /> },
    { id: "secrets", label: "Secrets", panel: () => <SecretsPanel /> },
    { id: "webhooks", label: "Webhooks", panel: () => <WebhooksPanel /> },
    { id: "settings", label: "Settings", panel: () => <SettingsPanel /> },
    ...(isAdmin ? [{ id: "activity", label: "Activity", panel: () => <ActivityPanel /> }] : []),
  ];
  return (
    <>
      <Heading title="Team" note={<><b>{team.name}</b> · <code>{team.slug}</code> · you are {isAdmin ? "an admin" : "a member"}</>} />
      <Tabs label="Parts of the team" tabs={tabs} chosen={search.get("tab") ?? "members"} onChoose={(tab) => setSearch({ tab }, { replace: true })} />
    </>
  );
}

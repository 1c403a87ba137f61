/** One environment: does it run, what is in it, how to use it, what came of it, what the team has set for it, its versions and people. */
import { useParams, useSearchParams } from "react-router";
import { useQuery } from "../api/use-query";
import { Heading } from "../design/heading";
import { Problem } from "../design/notice";
import { Skeleton } from "../design/skeleton";
import { Tabs } from "../design/tabs";
import { CheckPanel } from "./environment/check";
import { EnvironmentHead } from "./environment/head";
import { PeoplePanel } from "./environment/people";
import { ReadmePanel } from "./environment/readme";
import { ResultsPanel } from "./environment/results";
import { SecretsPanel } from "./environment/secrets";
import { SourcePanel } from "./environment/source";
import { UsePanel } from "./environment/use";
import { VersionsPanel } from "./environment/versions";

const REFRESH_MS = 4_000;

export function EnvironmentPage() {
  const { owner = "", name = "" } = useParams();
  const [search, setSearch] = useSearchParams();
  const version = search.get("version") ?? "latest";
  const release = { owner, name, version };
  const query = useQuery("/api/v1/environmentshub/{owner}/{name}/@{version}", { path: release }, REFRESH_MS);
  const detail = query.data?.data;
  const open = (changes: Record<string, string>) => setSearch((known) => ({ ...Object.fromEntries(known), ...changes }), { replace: true });
  if (!detail) {
    return (
      <>
        <Heading title={`${owner}/${name}`} />
        {query.problem ? <Problem of={query.problem} /> : <Skeleton what="the environment" lines={6} />}
      </>
    );
  }
  const tabs = [
    { id: "readme", label: "Readme", panel: () => <ReadmePanel release={release} /> },
    { id: "use", label: "Use it", panel: () => <UsePanel owner={owner} name={name} version={detail.semantic_version} requirement={detail.requirement} isLatest={version === "latest"} isPublic={detail.visibility === "PUBLIC"} /> },
    { id: "results", label: "Results", panel: () => <ResultsPanel owner={owner} name={name} /> },
    { id: "check", label: "Check", panel: () => <CheckPanel release={release} mayRetry={detail.may_push} /> },
    { id: "source", label: "Source", panel: () => <SourcePanel release={release} /> },
    { id: "secrets", label: "Secrets and variables", panel: () => <SecretsPanel environmentId={detail.id} /> },
    { id: "versions", label: "Versions", panel: () => <VersionsPanel owner={owner} name={name} shown={detail.semantic_version} onShow={(chosen) => open({ version: chosen })} /> },
    ...(detail.may_push ? [{ id: "people", label: "People", panel: () => <PeoplePanel owner={owner} name={name} isOwner={detail.is_owner} /> }] : []),
  ];
  return (
    <>
      <EnvironmentHead detail={detail} owner={owner} name={name} onChange={query.reload} />
      <Tabs label="Parts of the environment" tabs={tabs} chosen={search.get("tab") ?? "readme"} onChoose={(tab) => open({ tab })} />
    </>
  );
}

/** One environment: does it run, what is in it, how to use it, what the team has set for it, its versions. */
import { useParams, useSearchParams } from "react-router";
import type { ReleaseDetail } from "../api/shapes";
import { useQuery } from "../api/use-query";
import { Badge, ReleaseBadge } from "../design/badge";
import { words } from "../design/format";
import { Heading } from "../design/heading";
import { Notice, Problem } from "../design/notice";
import { Skeleton } from "../design/skeleton";
import { Tabs } from "../design/tabs";
import { Age } from "../design/time";
import { CheckPanel } from "./environment/check";
import { ReadmePanel } from "./environment/readme";
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
    { id: "use", label: "Use it", panel: () => <UsePanel owner={owner} name={name} version={detail.semantic_version} isLatest={version === "latest"} /> },
    { id: "check", label: "Check", panel: () => <CheckPanel release={release} /> },
    { id: "source", label: "Source", panel: () => <SourcePanel release={release} /> },
    { id: "secrets", label: "Secrets and variables", panel: () => <SecretsPanel environmentId={detail.id} /> },
    { id: "versions", label: "Versions", panel: () => <VersionsPanel owner={owner} name={name} shown={detail.semantic_version} onShow={(chosen) => open({ version: chosen })} /> },
  ];
  return (
    <>
      <Head detail={detail} title={`${owner}/${name}`} />
      {detail.quarantined && (
        <Notice tone="bad" title="This release is in quarantine: nobody can install, pull or start it.">
          <p>{detail.quarantine_reason ?? "Whoever runs this installation has withdrawn it and told its owner why."}</p>
        </Notice>
      )}
      <Tabs label="Parts of the environment" tabs={tabs} chosen={search.get("tab") ?? "readme"} onChoose={(tab) => open({ tab })} />
    </>
  );
}

function Head({ detail, title }: { detail: ReleaseDetail; title: string }) {
  return (
    <Heading title={title} note={detail.description || undefined}>
      <ReleaseBadge state={detail.badge} />
      <Badge isPlain>{detail.semantic_version}</Badge>
      <Badge isPlain>{detail.visibility === "PRIVATE" ? "seen by the team" : "seen by everybody"}</Badge>
      {detail.yanked && <Badge tone="bad">yanked</Badge>}
      <Origin of={detail.provenance} />
      {detail.runtime_hint && <Badge isPlain tone={detail.runtime_hint === "NEEDS_CONTAINER" ? "wait" : ""}>{words(detail.runtime_hint.toLowerCase())}</Badge>}
    </Heading>
  );
}

/** Who sent the release, when and with what; the commit is the sender's word. */
function Origin({ of: told }: { of: ReleaseDetail["provenance"] }) {
  const commit = told.commit && `commit ${told.commit.slice(0, 12)}${told.commit_is_clean === false ? " with changes" : ""}`;
  return (
    <span className="muted small">
      pushed by {told.pushed_by} <Age of={told.pushed_at} />
      {told.client && <> with {told.client}</>}
      {commit && <> from {told.repository ? <a href={told.repository} rel="noopener noreferrer nofollow">{commit}</a> : commit}</>}
    </span>
  );
}

/** The top of an environment's page: its state, where the release comes from, and what everybody may do with it. */
import { Link, useNavigate } from "react-router";
import { api } from "../../api/client";
import type { ReleaseDetail } from "../../api/shapes";
import { useAction } from "../../api/use-action";
import { Badge, ReleaseBadge } from "../../design/badge";
import { ConfirmButton } from "../../design/dialog";
import { words } from "../../design/format";
import { Heading } from "../../design/heading";
import { Notice } from "../../design/notice";
import { Age } from "../../design/time";
import { useToast } from "../../design/toast";

export function EnvironmentHead({ detail, owner, name, onChange }: { detail: ReleaseDetail; owner: string; name: string; onChange: () => void }) {
  return (
    <>
      <Heading title={`${owner}/${name}`} note={detail.description || undefined}>
        <StarButton detail={detail} path={{ owner, name }} onChange={onChange} />
        {!detail.is_owner && <ForkButton path={{ owner, name }} />}
      </Heading>
      <div className="row">
        <ReleaseBadge state={detail.badge} />
        <Badge isPlain>{detail.semantic_version}</Badge>
        <Badge isPlain>{detail.visibility === "PRIVATE" ? "seen by the team" : "seen by everybody"}</Badge>
        {detail.yanked && <Badge tone="bad">yanked</Badge>}
        {detail.runtime_hint && <Badge isPlain tone={detail.runtime_hint === "NEEDS_CONTAINER" ? "wait" : ""}>{words(detail.runtime_hint.toLowerCase())}</Badge>}
        {detail.tags.map((tag) => <Link key={tag} to={`/environments?tag=${encodeURIComponent(tag)}`}><Badge isPlain>{tag}</Badge></Link>)}
        <Origin of={detail} />
      </div>
      {detail.quarantined && (
        <Notice tone="bad" title="This release is in quarantine: nobody can install, pull or start it.">
          <p>{detail.quarantine_reason ?? "Whoever runs this installation has withdrawn it and told its owner why."}</p>
        </Notice>
      )}
    </>
  );
}

/** Who sent the release, when and with what; the commit is the sender's word. */
function Origin({ of: { provenance: told, forked_from: origin, forks } }: { of: ReleaseDetail }) {
  const commit = told.commit && `commit ${told.commit.slice(0, 12)}${told.commit_is_clean === false ? " with changes" : ""}`;
  return (
    <span className="muted small">
      pushed by {told.pushed_by} <Age of={told.pushed_at} />
      {told.client && <> with {told.client}</>}
      {commit && <> from {told.repository ? <a href={told.repository} rel="noopener noreferrer nofollow">{commit}</a> : commit}</>}
      {origin && <> · forked from <Link to={`/environments/${origin.split("@")[0]}`}>{origin}</Link></>}
      {forks > 0 && <> · {forks === 1 ? "1 fork" : `${forks} forks`}</>}
    </span>
  );
}

interface Named {
  path: { owner: string; name: string };
}

function StarButton({ detail, path, onChange }: Named & { detail: ReleaseDetail; onChange: () => void }) {
  const address = "/api/v1/environmentshub/{owner}/{name}/star";
  const turn = useAction(() => (detail.starred ? api.delete(address, { path }) : api.post(address, { path })), onChange);
  return (
    <button type="button" className="button" aria-pressed={detail.starred} disabled={turn.isBusy} onClick={() => void turn.run()}>
      <span aria-hidden="true">{detail.starred ? "★" : "☆"}</span> {detail.starred ? "Starred" : "Star"} <span className="muted">{detail.stars}</span>
    </button>
  );
}

function ForkButton({ path }: Named) {
  const say = useToast();
  const go = useNavigate();
  const fork = useAction(
    () => api.post("/api/v1/environmentshub/{owner}/{name}/fork", { path, body: {} }),
    ({ data }) => {
      say(`${data.slug} is yours.`);
      void go(`/environments/${data.slug}`);
    },
  );
  return (
    <ConfirmButton label="Fork" title={`Fork ${path.owner}/${path.name}?`} action={fork}>
      <p>Its latest release becomes the first one of an environment of your team, private at first. It is checked again.</p>
    </ConfirmButton>
  );
}

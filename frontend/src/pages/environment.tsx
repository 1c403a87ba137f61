/** One environment: does it run, what is in it, how to use it, its versions. */
import { useParams } from "react-router";
import type { BadgeDetail, EnvironmentDetail, VersionRow } from "../api/types";
import { useQuery } from "../api/use-query";
import { Heading, Loading, Problem, ReleaseBadge } from "../design/components";
import { when } from "../design/format";

export function EnvironmentPage() {
  const { owner = "", name = "" } = useParams();
  const base = `/environmentshub/${owner}/${name}`;
  const detail = useQuery<{ data: EnvironmentDetail }>(`${base}/@latest`, 4000);
  const versions = useQuery<{ data: { versions: VersionRow[] } }>(`${base}/versions`);
  const check = useQuery<{ data: BadgeDetail }>(`${base}/@latest/badge`, 4000);
  const readme = useQuery<{ data: { html: string } }>(`${base}/@latest/readme`);
  const environment = detail.data?.data;
  if (!environment) return detail.error ? <Problem error={detail.error} /> : <Loading what="the environment" />;
  return (
    <>
      <Heading title={`${owner}/${name}`} note={environment.metadata.description}>
        <ReleaseBadge state={environment.badge} />
        <span className="badge">{environment.semantic_version}</span>
        <span className="badge">{environment.visibility.toLowerCase()}</span>
      </Heading>
      <Verdict check={check.data?.data} logPath={`${base}/@latest/log`} />
      <section className="card">
        <h2>Use it</h2>
        <pre>{`prime pull ${owner}/${name}
prime eval run ${owner}/${name} -m tiny -n 64
prime train run.toml      # [[env]] id = "${owner}/${name}"`}</pre>
      </section>
      {readme.data?.data.html && (
        // The server renders and sanitises the README; nothing else of a tenant reaches this element.
        <section className="card readme" dangerouslySetInnerHTML={{ __html: readme.data.data.html }} />
      )}
      <Versions rows={versions.data?.data.versions ?? []} />
    </>
  );
}

function Verdict({ check, logPath }: { check: BadgeDetail | undefined; logPath: string }) {
  const verdict = check?.verdict;
  const log = useQuery<{ data: { log: string } }>(verdict ? logPath : null);
  if (!verdict) return null;
  const place = verdict.module ? ` (${verdict.module}${verdict.line ? `, line ${verdict.line}` : ""})` : "";
  return (
    <section className={`notice ${verdict.ok ? "good" : "bad"}`}>
      <b>{verdict.summary}{place}</b>
      {log.data?.data.log && <details><summary>Log of the check</summary><pre className="logs">{log.data.data.log}</pre></details>}
    </section>
  );
}

function Versions({ rows }: { rows: VersionRow[] }) {
  return (
    <section className="card">
      <h2>Versions</h2>
      <div className="table-wrap">
        <table>
          <thead><tr><th>Version</th><th>Check</th><th>Content hash</th><th>Pushed</th></tr></thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.version}>
                <td>{row.version} {row.yanked && <span className="badge">yanked</span>}</td>
                <td><ReleaseBadge state={row.badge} /></td>
                <td><code>{row.sha256.slice(0, 16)}</code></td>
                <td className="muted">{when(row.created_at)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

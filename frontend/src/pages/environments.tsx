/** The hub: every environment this team may use. */
import { useState } from "react";
import { Link } from "react-router";
import type { EnvironmentRow, Page } from "../api/types";
import { useQuery } from "../api/use-query";
import { Empty, Heading, Loading, Problem, ReleaseBadge } from "../design/components";
import { when } from "../design/format";

export function EnvironmentsPage() {
  const [search, setSearch] = useState("");
  const query = useQuery<Page<EnvironmentRow>>(`/environmentshub/?include_teams=true&limit=100&search=${encodeURIComponent(search)}`);
  const rows = query.data?.data;
  return (
    <>
      <Heading title="Environments" note="Tasks, harness and rewards, as a package that anyone here can run." />
      <input className="search" type="search" placeholder="Search by name or description" aria-label="Search environments" value={search} onChange={(event) => setSearch(event.target.value)} />
      <Problem error={query.error} />
      <section className="card">
        {!rows && !query.error && <Loading what="environments" />}
        {rows?.length === 0 && <Empty title={search ? "Nothing matches." : "No environment yet."} command="prime push path/to/environment" />}
        {rows && rows.length > 0 && (
          <div className="table-wrap">
            <table>
              <thead><tr><th>Environment</th><th>Description</th><th>Version</th><th>Check</th><th>Updated</th></tr></thead>
              <tbody>
                {rows.map((row) => (
                  <tr key={row.id}>
                    <td><Link to={`/environments/${row.owner.name}/${row.name}`}>{row.owner.name}/{row.name}</Link></td>
                    <td className="muted">{row.description}</td>
                    <td>{row.latest_version ?? "—"} {row.visibility === "PRIVATE" && <span className="badge">private</span>}</td>
                    <td><ReleaseBadge state={row.badge} /></td>
                    <td className="muted">{when(row.updated_at)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </>
  );
}

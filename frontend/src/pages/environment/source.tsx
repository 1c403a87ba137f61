/** The source as it was pushed: folders to open, files to read. The place is in the address, so that a link can name a file. */
import { useSearchParams } from "react-router";
import { useQuery } from "../../api/use-query";
import { Card } from "../../design/card";
import { bytes } from "../../design/format";
import { Notice, Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import type { Release } from "./readme";

function parentsOf(path: string): { name: string; path: string }[] {
  const parts = path.split("/").filter(Boolean);
  return parts.map((name, index) => ({ name, path: parts.slice(0, index + 1).join("/") }));
}

export function SourcePanel({ release }: { release: Release }) {
  const [search, setSearch] = useSearchParams();
  const path = search.get("path") ?? "";
  const setPath = (chosen: string) => setSearch((known) => ({ ...Object.fromEntries(known), path: chosen }), { replace: true });
  const query = useQuery("/api/v1/environmentshub/{owner}/{name}/@{version}/inspect", { path: release, query: { path } });
  const found = query.data?.data;
  return (
    <Card>
      <nav className="row" aria-label="Folder">
        <button type="button" className="button quiet slim" onClick={() => setPath("")}>{release.name}</button>
        {parentsOf(path).map((one) => (
          <span key={one.path} className="row">
            <span aria-hidden="true" className="muted">/</span>
            <button type="button" className="button quiet slim" aria-current={one.path === path} onClick={() => setPath(one.path)}>{one.name}</button>
          </span>
        ))}
      </nav>
      <Problem of={query.problem} />
      {!found && !query.problem && <Skeleton what="the source" />}
      {found?.kind === "directory" && (
        <ul className="files">
          {(found.entries ?? []).map((entry) => (
            <li key={entry.path}>
              <button type="button" className="button quiet slim" onClick={() => setPath(entry.path)}>
                <span className="mono">{entry.name}{entry.is_directory ? "/" : ""}</span>
              </button>
              {entry.size !== null && !entry.is_directory && <span className="muted small">{bytes(entry.size)}</span>}
            </li>
          ))}
        </ul>
      )}
      {found?.kind === "file" && (
        <>
          {found.truncated && <Notice>Only the beginning is shown. <code>prime pull</code> brings the whole file.</Notice>}
          <pre className="logs" tabIndex={0}><code>{found.content ?? "This file is not text."}</code></pre>
        </>
      )}
    </Card>
  );
}

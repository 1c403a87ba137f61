/** The README as the server rendered and sanitised it. Its links to files of the release are searches of this page. */
import type { MouseEvent } from "react";
import { useSearchParams } from "react-router";
import { useQuery } from "../../api/use-query";
import { Card } from "../../design/card";
import { Empty } from "../../design/empty";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";

export interface Release {
  owner: string;
  name: string;
  version: string;
}

export function ReadmePanel({ release }: { release: Release }) {
  const query = useQuery("/api/v1/environmentshub/{owner}/{name}/@{version}/readme", { path: release });
  const html = query.data?.data.html;
  const [, setSearch] = useSearchParams();
  const follow = (event: MouseEvent<HTMLElement>) => {
    const address = (event.target as Element).closest("a")?.getAttribute("href");
    if (!address?.startsWith("?") || event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    setSearch((known) => ({ ...Object.fromEntries(known), ...Object.fromEntries(new URLSearchParams(address)) }));
  };
  return (
    <Card>
      <Problem of={query.problem} />
      {!query.data && !query.problem && <Skeleton what="the README" />}
      {html === "" && <Empty title="This version has no README. Add README.md beside pyproject.toml and push again." />}
      {/* Nothing else of a tenant reaches an element as HTML; the server lets through text, links, tables and code alone. */}
      {html && <div className="prose" onClick={follow} dangerouslySetInnerHTML={{ __html: html }} />}
    </Card>
  );
}

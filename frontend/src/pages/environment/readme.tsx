/** The README as the server rendered and sanitised it. */
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
  return (
    <Card>
      <Problem of={query.problem} />
      {!query.data && !query.problem && <Skeleton what="the README" />}
      {html === "" && <Empty title="This version has no README. Add README.md beside pyproject.toml and push again." />}
      {/* Nothing else of a tenant reaches an element as HTML; the server lets through text, links, tables and code alone. */}
      {html && <div className="prose" dangerouslySetInnerHTML={{ __html: html }} />}
    </Card>
  );
}

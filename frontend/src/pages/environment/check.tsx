/** The release check: what was tried in the sandbox at the push, what came of it, and its log. */
import { api } from "../../api/client";
import { useAction } from "../../api/use-action";
import { useQuery } from "../../api/use-query";
import { Card, Definitions } from "../../design/card";
import { ratio } from "../../design/format";
import { Notice, Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { Age } from "../../design/time";
import type { Compatibility } from "../../api/shapes";
import { Harnesses, Problems, Samples, lookedAt } from "./check-findings";
import type { Release } from "./readme";

const REFRESH_MS = 3_000;

export function CheckPanel({ release, mayRetry }: { release: Release; mayRetry: boolean }) {
  const query = useQuery("/api/v1/environmentshub/{owner}/{name}/@{version}/badge", { path: release }, REFRESH_MS);
  const state = query.data?.data;
  if (!state) return <Card>{query.problem ? <Problem of={query.problem} /> : <Skeleton what="the check" />}</Card>;
  const { verdict } = state;
  if (!verdict) return <Notice title="The check has not ended.">The release is built in a sandbox, its tasks are read and checked, and a few rollouts run on a canned model. This page shows the outcome by itself.</Notice>;
  const isAtWork = state.badge === "PENDING" || state.badge === "BUILDING";
  const place = verdict.module ? `${verdict.module}${verdict.line ? `, line ${verdict.line}` : ""}` : undefined;
  return (
    <>
      {isAtWork && <Notice title="It is being checked once more.">Until that ends, what follows is what the check before it found.</Notice>}
      <Notice tone={verdict.ok ? "good" : "bad"} title={verdict.summary}>{!verdict.ok && <p>Correct it, raise the version and push again: a version never changes.</p>}</Notice>
      <Card title="What was seen">
        <Definitions
          of={[
            ...(place ? [["Place", <code key="place">{place}</code>] as [string, React.ReactNode]] : []),
            ["Tasks", verdict.tasks_count ?? "not counted"],
            ...(verdict.splits?.length ? [["Looked at", verdict.splits.map(lookedAt).join(", ")] as [string, React.ReactNode]] : []),
            ...(verdict.compatibility ? uses(verdict.compatibility) : []),
            ["Took", `${ratio(verdict.duration_s, 1)} s`],
            ["Checked", <Age key="checked" of={state.checked_at} />],
          ]}
        />
      </Card>
      {!!verdict.problems?.length && <Problems of={verdict.problems} />}
      {!!verdict.samples?.length && <Samples of={verdict.samples} />}
      {!!verdict.compatibility?.needs?.harnesses?.length && <Harnesses of={verdict.compatibility.needs.harnesses} />}
      {state.requirements_lock && (
        <Card title="Locked packages">
          <p className="muted">Installed beyond the base image. Every run installs exactly these.</p>
          <pre className="logs" tabIndex={0}>{state.requirements_lock}</pre>
        </Card>
      )}
      <CheckLog key={state.checked_at} release={release} />
      {mayRetry && <Retry release={release} isAtWork={isAtWork} onDone={query.reload} />}
    </>
  );
}

function listed(name: string, of: string[] | undefined): [string, React.ReactNode][] {
  return of?.length ? [[name, of.join(", ")]] : [];
}

/** What a package defines, and the library that plays it. */
const LIBRARY = { taskset: "Taskset (verifiers 0.4.0)", load_environment: "load_environment (verifiers 0.3.1)" };

/** What may be done with it, in words. */
function uses(seen: Compatibility): [string, React.ReactNode][] {
  const isTrained = seen.trained_agents.length > 0;
  const { needs } = seen;
  const missing = [needs?.container && "a container", needs?.network && "a network"].filter(Boolean).join(" and ");
  const played: [string, React.ReactNode][] = [
    ["Good for", isTrained ? "evaluation and training" : "evaluation alone: no agent of it is trained"],
    ...(seen.interface ? [["Interface", LIBRARY[seen.interface]] as [string, React.ReactNode]] : []),
    ["Agents", seen.agents.map((agent) => (seen.trained_agents.includes(agent) ? agent : `${agent} (not trained)`)).join(", ")],
    ["Turns", seen.turns],
  ];
  return [
    ...(seen.agents.length > 0 ? played : []),
    ["Needs", missing ? `${missing}, which a sandbox does not have` : "no network, no container"],
    ...listed("Tools over MCP", needs?.tools),
    ...listed("Skills", needs?.skills),
    ...listed("Group rewards", seen.group_rewards),
  ];
}

function Retry({ release, isAtWork, onDone }: { release: Release; isAtWork: boolean; onDone: () => void }) {
  const retry = useAction(() => api.post("/api/v1/environmentshub/{owner}/{name}/@{version}/check", { path: release }), onDone);
  return (
    <Card title="Once more">
      <p className="muted">For when what failed was not the package. Nothing about the release changes but its badge.</p>
      <Problem of={retry.problem} />
      <div><button type="button" className="button" disabled={retry.isBusy || isAtWork} onClick={() => void retry.run()}>Check again</button></div>
    </Card>
  );
}

function CheckLog({ release }: { release: Release }) {
  const query = useQuery("/api/v1/environmentshub/{owner}/{name}/@{version}/log", { path: release });
  return (
    <Card title="Log">
      <Problem of={query.problem} />
      {query.data ? <pre className="logs" tabIndex={0}>{query.data.data.log || "The check wrote nothing."}</pre> : !query.problem && <Skeleton what="the log" />}
    </Card>
  );
}

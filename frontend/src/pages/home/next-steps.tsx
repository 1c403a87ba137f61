/** The way from nothing to a served adapter: what is done, and the command of what is next. Gone once all of it is done. */
import { Link } from "react-router";
import { useQuery } from "../../api/use-query";
import { Card } from "../../design/card";
import { Command } from "../../design/command";

interface Step {
  title: string;
  isDone: boolean;
  command: string;
  link: readonly [to: string, text: string];
}

export function NextSteps({ hasRun, hasAdapter, hasDeployed }: { hasRun: boolean; hasAdapter: boolean; hasDeployed: boolean }) {
  const keys = useQuery("/api/v1/keys", {});
  const environments = useQuery("/api/v1/environmentshub", { query: { mine_only: true, limit: 1 } });
  const requests = useQuery("/api/v1/inference/requests", { query: { limit: 1 } });
  if (!keys.data || !environments.data || !requests.data) return null;
  const steps: Step[] = [
    { title: "Sign your terminal in", isDone: keys.data.items.length > 0, command: `export PRIME_API_BASE_URL=${location.origin}\nprime login`, link: ["/keys", "or make a key here"] },
    { title: "Push an environment", isDone: environments.data.total_count > 0, command: "prime push examples/environments/digit_sum", link: ["/environments?tab=all", "or take a public one"] },
    { title: "Train an adapter on it", isDone: hasRun, command: "prime train examples/configs/digit_sum.toml --follow", link: ["/runs", "all runs"] },
    { title: "Deploy it", isDone: hasDeployed, command: "prime deployments create ADAPTER_ID", link: ["/models", hasAdapter ? "choose an adapter here" : "adapters appear here"] },
    { title: "Call it", isDone: requests.data.items.length > 0, command: "prime chat MODEL", link: ["/chat", "or chat here"] },
  ];
  const next = steps.findIndex((step) => !step.isDone);
  if (next === -1) return null;
  return (
    <Card title="What to do next" note={`${steps.filter((step) => step.isDone).length} of ${steps.length} done`}>
      <ol className="steps">
        {steps.map((step, index) => (
          <li key={step.title} data-done={step.isDone}>
            <span className="row"><b>{step.title}</b>{step.isDone ? <span className="muted small">done</span> : <Link className="small" to={step.link[0]}>{step.link[1]}</Link>}</span>
            {index === next && <Command text={step.command} />}
          </li>
        ))}
      </ol>
    </Card>
  );
}

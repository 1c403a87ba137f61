/** Lines to copy: take the environment, evaluate a model on it, train on it, show its badge. */
import { useQuery } from "../../api/use-query";
import { Card } from "../../design/card";
import { Command } from "../../design/command";

export function UsePanel({ owner, name, version, requirement, isLatest, isPublic }: { owner: string; name: string; version: string; requirement: string; isLatest: boolean; isPublic: boolean }) {
  const models = useQuery("/api/v1/rft/models", {});
  const model = models.data?.models[0]?.name ?? "tiny";
  const id = isLatest ? `${owner}/${name}` : `${owner}/${name}@${version}`;
  const config = `name = "${name}"
model = "${model}"
max_steps = 40
batch_size = 64
rollouts_per_example = 8

[[env]]
id = "${id}"`;
  return (
    <div className="columns">
      <Card title="Take it and evaluate it">
        <Command label="Download and unpack the source" text={`prime pull ${id}`} />
        <Command label="Install it beside your own code" text={`prime install ${id}`} />
        <Command label="Stand on it: a dependency of your environment" text={`"${requirement}"`} />
        <Command label="Score a model on 64 tasks" text={`prime eval run ${id} -m ${model} -n 64`} />
      </Card>
      <Card title="Train on it">
        <Command label="run.toml" text={config} />
        <Command label="Start and follow" text="prime train run.toml --follow" />
      </Card>
      {isPublic && (
        <Card title="Show its badge">
          <Command label="Markdown" text={`[![check](${location.origin}/hub/${owner}/${name}/badge.svg)](${location.origin}/environments/${owner}/${name})`} />
        </Card>
      )}
    </div>
  );
}

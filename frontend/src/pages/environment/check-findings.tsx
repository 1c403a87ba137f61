/** What a release check looked at one by one: tasks that are unfit, rollouts on the canned model, harnesses. */
import type { HarnessFit, SampleRollout, SplitSeen, TaskProblem } from "../../api/shapes";
import { Card } from "../../design/card";
import { ratio } from "../../design/format";
import { type Column, Table } from "../../design/table";

/** `eval: 8 of 200`, `train: 8 of 200 (other values of dataset_split are unknown)` */
export function lookedAt(split: SplitSeen): string {
  const unknown = split.open_setting ? ` (other values of ${split.open_setting} are unknown)` : "";
  return `${split.name ? `${split.name}: ` : ""}${split.checked.length} of ${split.tasks_count ?? "an endless number"}${unknown}`;
}

const PROBLEM_COLUMNS: Column<TaskProblem>[] = [
  { name: "Split", cell: (problem) => problem.split || "the only one" },
  { name: "Task", cell: (problem) => problem.task, kind: "number" },
  { name: "Field", cell: (problem) => <code>{problem.field}</code> },
  { name: "Problem", cell: (problem) => problem.message },
];

export function Problems({ of }: { of: TaskProblem[] }) {
  return (
    <Card title="Unfit tasks" note="The first, the last and some between were read twice and checked without a model.">
      <Table caption="Tasks that are not fit to be played" columns={PROBLEM_COLUMNS} rows={of} rowKey={(problem) => `${problem.split} ${problem.task} ${problem.field}`} />
    </Card>
  );
}

export function Samples({ of }: { of: SampleRollout[] }) {
  return (
    <Card title="Rollouts on a canned model" note="It says the same to every task: these show that the environment plays and scores, not how hard it is.">
      {of.map((sample) => (
        <details key={sample.task} open={sample.state !== "ok"}>
          <summary>
            Task {sample.task}: {sample.state === "ok" ? `reward ${ratio(sample.reward ?? 0, 2)}, ${sample.turns} ${sample.turns === 1 ? "turn" : "turns"}` : sample.state}
          </summary>
          {sample.error && <p>{sample.error}</p>}
          <pre className="logs" tabIndex={0}>{(sample.messages ?? []).map((message) => `${message.role}: ${message.content}`).join("\n") || sample.preview}</pre>
        </details>
      ))}
    </Card>
  );
}

const HARNESS_COLUMNS: Column<HarnessFit>[] = [
  { name: "Harness", cell: (fit) => <code>{fit.harness}</code> },
  { name: "Evaluate", cell: (fit) => (fit.evaluate ? "yes" : "no") },
  { name: "Train", cell: (fit) => (fit.train ? "yes" : "no") },
  { name: "Why not", cell: (fit) => fit.reason },
];

export function Harnesses({ of }: { of: HarnessFit[] }) {
  return (
    <Card title="Harnesses" note="The first one plays it here.">
      <Table caption="Which harness can play the environment" columns={HARNESS_COLUMNS} rows={of} rowKey={(fit) => fit.harness} />
    </Card>
  );
}

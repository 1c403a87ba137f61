/** The configuration as it runs: every value, what somebody chose marked, and the file that starts the same run again. */
import { useState } from "react";
import type { Run } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { Badge } from "../../design/badge";
import { Card } from "../../design/card";
import { Command } from "../../design/command";
import { Problem } from "../../design/notice";
import { type Column, Table } from "../../design/table";

interface Row {
  path: string;
  value: string;
  isChosen: boolean;
}

/** `environments.0.id` → value, deeper tables first taken apart. An empty table is a value. */
function leaves(node: unknown, path = ""): [string, unknown][] {
  const isTable = typeof node === "object" && node !== null && Object.keys(node).length > 0;
  const isPlainList = Array.isArray(node) && node.every((entry) => typeof entry !== "object" || entry === null);
  if (!isTable || isPlainList) return [[path, node]];
  return Object.entries(node).flatMap(([name, value]) => leaves(value, path ? `${path}.${name}` : name));
}

const COLUMNS: Column<Row>[] = [
  { name: "Field", sortBy: (row) => row.path, cell: (row) => <code>{row.path}</code> },
  { name: "Value", cell: (row) => <code>{row.value}</code> },
  { name: "Origin", sortBy: (row) => (row.isChosen ? 0 : 1), cell: (row) => (row.isChosen ? <Badge tone="graft" isPlain>chosen</Badge> : <span className="muted small">default</span>) },
];

export function ConfigPanel({ run }: { run: Run }) {
  const { data, problem } = useQuery("/api/v1/rft/runs/{run_id}/config", { path: { run_id: run.id } });
  const [chosenAlone, setChosenAlone] = useState(false);
  const changed = new Set(data?.changed);
  const rows = leaves(run.effectiveConfig).map(([path, value]): Row => ({ path, value: JSON.stringify(value), isChosen: changed.has(path) }));
  return (
    <>
      <Problem of={problem} />
      {data?.toml && (
        <Card title="The same run again" note="As a file for prime train. What equals its default is left out; secrets are never shown.">
          <Command text={data.toml.trim()} />
        </Card>
      )}
      <Card
        title="As it runs"
        actions={<button type="button" className="button slim" aria-pressed={chosenAlone} onClick={() => setChosenAlone(!chosenAlone)}>{chosenAlone ? "Show every field" : "Show what was chosen"}</button>}
      >
        <Table caption="Configuration" columns={COLUMNS} rows={chosenAlone ? rows.filter((row) => row.isChosen) : rows} rowKey={(row) => row.path} />
      </Card>
    </>
  );
}

/** Sends a file: digest, signed address, PUT with progress, and the check of every line. A refusal names the lines. */
import { useState } from "react";
import { api } from "../../api/client";
import type { ApiProblem } from "../../api/problem";
import type { Dataset } from "../../api/shapes";
import { putFile, sha256Of } from "../../api/upload";
import { useAction } from "../../api/use-action";
import { Card } from "../../design/card";
import { Field, Form } from "../../design/form";
import { Notice } from "../../design/notice";
import { useToast } from "../../design/toast";
import { DroppedLines, type DroppedLine, Report } from "./report";

interface Asked {
  file: File;
  name: string;
  droppedMax: number;
}

const PERCENT = 100;
const FILE_PLACE = /^file\.(\d+)$/;

/** `Sums of digits.jsonl` → `sums-of-digits`. */
const named = (file: string) => file.replace(/\.[^.]*$/, "").toLowerCase().replace(/[^a-z0-9._-]+/g, "-").replace(/^[^a-z0-9]+/, "");

function read(values: FormData): Asked {
  const file = values.get("file") as File;
  return { file, name: String(values.get("name") ?? "").trim() || named(file.name), droppedMax: Number(values.get("dropped_max")) / PERCENT };
}

async function send({ file, name, droppedMax }: Asked, onProgress: (share: number) => void): Promise<Dataset> {
  const body = { name, sha256: await sha256Of(file), size_bytes: file.size, dropped_max: droppedMax };
  const { id, upload_url: address } = await api.post("/api/v1/datasets", { body });
  if (address) await putFile(address, file, onProgress);
  onProgress(1);
  return api.post("/api/v1/datasets/{dataset_id}/finalize", { path: { dataset_id: id } });
}

export function Upload({ onDone }: { onDone: () => void }) {
  const say = useToast();
  const [share, setShare] = useState(0);
  const [made, setMade] = useState<Dataset>();
  const upload = useAction(
    (asked: Asked) => send(asked, setShare),
    (dataset) => {
      say(`The dataset “${dataset.dataset.name}” is there.`);
      setMade(dataset);
      onDone();
    },
  );
  const submit = async (values: FormData, form: HTMLFormElement) => {
    setShare(0);
    setMade(undefined);
    if (await upload.run(read(values))) form.reset();
  };
  const refused = upload.problem && linesOf(upload.problem).length > 0 ? upload.problem : undefined;
  const complaints = upload.problem?.fields ?? {};
  return (
    <Card title="Upload" note="JSON lines of one kind: messages, prompt and completion, or text. Every line is checked; what a name stands for never changes.">
      <Form onSubmit={(values, form) => void submit(values, form)} problem={refused ? undefined : upload.problem} names={["name", "dropped_max", "file", "size_bytes"]}>
        <div className="fields">
          <Field label="File" name="file" type="file" accept=".jsonl,.json,.ndjson,.txt" required complaint={complaints.size_bytes ?? (refused ? undefined : complaints.file)} />
          <Field label="Name" name="name" maxLength={100} hint="What runs call it. Default: the file's name." complaint={complaints.name} />
          <Field label="Rows that may be left out, %" name="dropped_max" type="number" min={0} max={100} step="any" defaultValue={1} complaint={complaints.dropped_max} />
        </div>
        {upload.isBusy && <Sending share={share} />}
        <div><button className="button primary" disabled={upload.isBusy}>Upload</button></div>
      </Form>
      {refused && <Refusal of={refused} />}
      {made && made.report.dropped > 0 && <Notice title={`“${made.dataset.name}” is there, less some of its rows.`}><Report of={made.report} /></Notice>}
    </Card>
  );
}

function Sending({ share }: { share: number }) {
  return (
    <div className="stack tight">
      <progress max={1} value={share} aria-label="Sent" />
      <span className="muted small" role="status">{share < 1 ? `${Math.round(share * PERCENT)} % sent` : "Every line is being checked …"}</span>
    </div>
  );
}

/** The server names each line as a field of its own. */
function linesOf(problem: ApiProblem): DroppedLine[] {
  return Object.entries(problem.fields).flatMap(([place, reason]) => {
    const line = FILE_PLACE.exec(place)?.[1];
    return line ? [{ line: Number(line), reason }] : [];
  });
}

function Refusal({ of: problem }: { of: ApiProblem }) {
  return (
    <>
      <Notice tone="bad" title="The file is refused, and nothing of it is kept.">
        <p>{problem.fields.file}</p>
        {problem.hint && <p className="small">{problem.hint}</p>}
      </Notice>
      <DroppedLines lines={linesOf(problem)} />
    </>
  );
}

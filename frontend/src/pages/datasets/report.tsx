/** What became of a file's lines: counts, and each dropped line with its reason. */
import { useState } from "react";
import type { DatasetReport } from "../../api/shapes";
import { useQuery } from "../../api/use-query";
import { Dialog } from "../../design/dialog";
import { count } from "../../design/format";
import { Problem } from "../../design/notice";
import { Skeleton } from "../../design/skeleton";
import { type Column, Table } from "../../design/table";

export interface DroppedLine {
  line: number;
  reason: string;
}

const COLUMNS: Column<DroppedLine>[] = [
  { name: "Line", kind: "number", sortBy: (row) => row.line, cell: (row) => count(row.line) },
  { name: "Why it was left out", sortBy: (row) => row.reason, cell: (row) => row.reason },
];

export function DroppedLines({ lines }: { lines: DroppedLine[] }) {
  return lines.length > 0 && <Table caption="Lines that were left out" columns={COLUMNS} rows={lines} rowKey={(row) => String(row.line)} />;
}

export function Report({ of: report }: { of: DatasetReport }) {
  const named = report.problems ?? [];
  const unnamed = report.dropped - named.length;
  return (
    <>
      <p>{count(report.kept)} of {count(report.rows)} rows are kept, {count(report.dropped)} left out.</p>
      <DroppedLines lines={named} />
      {unnamed > 0 && <p className="muted small">{count(unnamed)} more lines were left out; the first {named.length} are named.</p>}
    </>
  );
}

/** The report of a dataset's import, where its row is. */
export function ReportButton({ id, name }: { id: string; name: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="button slim" onClick={() => setOpen(true)}>Report</button>
      {isOpen && <ReportDialog id={id} name={name} onClose={() => setOpen(false)} />}
    </>
  );
}

function ReportDialog({ id, name, onClose }: { id: string; name: string; onClose: () => void }) {
  const { data, problem } = useQuery("/api/v1/datasets/{dataset_id}", { path: { dataset_id: id } });
  return (
    <Dialog title={`What became of the rows of ${name}`} onClose={onClose}>
      <Problem of={problem} />
      {data ? <Report of={data.report} /> : !problem && <Skeleton what="the report" />}
      <div className="dialog-actions"><button type="button" className="button" onClick={onClose}>Close</button></div>
    </Dialog>
  );
}

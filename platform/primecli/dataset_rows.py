"""Rows of a dataset on this machine as tasks: a prompt, and the answer that is wanted. Each row that is no task is told by line.

Reads JSON lines, Parquet, and a folder that the `datasets` library saved. Knows the usual names of columns. Refuses to know what
becomes of the tasks.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from primecli.output import CliError

PROMPTS = ("prompt", "question", "problem", "instruction", "input", "query", "messages")
ANSWERS = ("answer", "target", "expected_answer", "solution", "output", "label", "completion", "response")
ROWS_MAX = 200_000
PROMPT_CHARACTERS_MAX = 100_000
SHOWN_MAX = 20
FINAL_MARK = "####"
"""Before the final answer, in datasets that tell the way there first."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Columns:
    """Which columns hold the prompt and the answer."""

    prompt: str
    answer: str


@dataclass
class RowsReport:
    """`problems` pairs the number of a row, counted from 1, with the reason why it is left out."""

    columns: Columns
    tasks: list[dict[str, Any]] = field(default_factory=list)
    problems: list[tuple[int, str]] = field(default_factory=list)

    @property
    def rows_count(self) -> int:
        return len(self.tasks) + len(self.problems)

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": self.rows_count,
            "kept": len(self.tasks),
            "dropped": len(self.problems),
            "columns": {"prompt": self.columns.prompt, "answer": self.columns.answer},
            "problems": [{"line": line, "reason": reason} for line, reason in self.problems[:SHOWN_MAX]],
            "reasons": dict(Counter(reason for _, reason in self.problems)),
        }


def read_tasks(path: Path, *, split: str, prompt: str | None = None, answer: str | None = None) -> RowsReport:
    """Every row of a file or folder as a task, or as a problem. Raises CliError for what is no dataset at all."""
    report: RowsReport | None = None
    for number, row in enumerate(_rows(path, split), start=1):
        if number > ROWS_MAX:
            raise CliError(
                f"{path} has more than {ROWS_MAX} rows", hint="give a part of it, or push it with `prime datasets push`"
            )
        if report is None:
            if isinstance(row, str):
                raise CliError(f"{path}, line {number}: {row}", hint="JSON lines hold one object a line")
            report = RowsReport(_columns(row, prompt, answer))
        _take(report, number, row)
    if report is None:
        raise CliError(f"{path} has no rows")
    return report


def _take(report: RowsReport, number: int, row: Row | str) -> None:
    """A row is a text where it could not be read: the reason why."""
    if isinstance(row, str):
        report.problems.append((number, row))
        return
    prompt, answer = _prompt(row.get(report.columns.prompt)), _answer(row.get(report.columns.answer))
    if not prompt:
        report.problems.append((number, f"no text in column {report.columns.prompt}"))
    elif not answer:
        report.problems.append((number, f"no text in column {report.columns.answer}"))
    elif len(prompt) > PROMPT_CHARACTERS_MAX:
        report.problems.append((number, f"the prompt has more than {PROMPT_CHARACTERS_MAX} characters"))
    else:
        report.tasks.append({"prompt": prompt, "answer": answer})


def _columns(row: Row, prompt: str | None, answer: str | None) -> Columns:
    """As named, or the first usual name that the first row has."""
    found = {"prompt": prompt or _first(PROMPTS, row), "answer": answer or _first(ANSWERS, row)}
    for role, column in found.items():
        if column is None or column not in row:
            have = ", ".join(sorted(row))
            raise CliError(f"no column for the {role}; there are {have}", hint=f"name it: --{role}-column COLUMN")
    return Columns(str(found["prompt"]), str(found["answer"]))


def _first(names: tuple[str, ...], row: Row) -> str | None:
    return next((name for name in names if name in row), None)


def _prompt(value: Any) -> str:
    """A text, or the first thing that a user says in a conversation."""
    if isinstance(value, list):
        said = (one.get("content") for one in value if isinstance(one, dict) and one.get("role") == "user")
        value = next(said, "")
    return value.strip() if isinstance(value, str) else ""


def _answer(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, list):
        value = next((one.get("content") for one in reversed(value) if isinstance(one, dict)), "")
    return str(value).rpartition(FINAL_MARK)[2].strip() if isinstance(value, str | int | float) else ""


def _rows(path: Path, split: str) -> Iterator[Row | str]:
    if path.is_dir():
        return _saved(path, split)
    if path.suffix == ".parquet":
        return _parquet(path)
    return _lines(path)


def _lines(path: Path) -> Iterator[Row | str]:
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                yield _object(line)
    except UnicodeDecodeError as error:
        raise CliError(f"{path} is no UTF-8 text: {error}") from error


def _object(line: str) -> Row | str:
    try:
        found = json.loads(line)
    except ValueError as error:
        return f"not JSON: {getattr(error, 'msg', error)}"
    return found if isinstance(found, dict) else "not a JSON object"


def _parquet(path: Path) -> Iterator[Row]:
    parquet = _arrow("parquet")
    for batch in parquet.ParquetFile(path).iter_batches(batch_size=256):
        yield from batch.to_pylist()


def _saved(folder: Path, split: str) -> Iterator[Row]:
    """What `Dataset.save_to_disk` leaves: `state.json` names the files; a folder of several has one folder for each split."""
    if (folder / "dataset_dict.json").is_file():
        splits = json.loads((folder / "dataset_dict.json").read_text())["splits"]
        if split not in splits:
            raise CliError(f"{folder} has no split '{split}'; there are {', '.join(splits)}", hint="--split NAME")
        folder = folder / split
    if not (folder / "state.json").is_file():
        raise CliError(f"{folder} is no saved dataset", hint="a folder that `Dataset.save_to_disk` wrote has a state.json")
    ipc = _arrow("ipc")
    for data in json.loads((folder / "state.json").read_text())["_data_files"]:
        with (folder / Path(data["filename"]).name).open("rb") as stream, ipc.open_stream(stream) as reader:
            for batch in reader:
                yield from batch.to_pylist()


def _arrow(module: str) -> Any:
    try:
        # Heavy and optional: JSON lines need none of it.
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as error:
        raise CliError("reading this needs pyarrow", hint="pip install pyarrow, or save the rows as JSON lines") from error
    return {"ipc": pyarrow.ipc, "parquet": pyarrow.parquet}[module]

"""What the command prints: tables or JSON on stdout, notes, progress and errors on stderr; and what its exit code means.

Knows nothing of the API. Machine-readable output is the server's own reply, so that its fields are the API's and stay stable.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum, StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table


class ExitCode(IntEnum):
    """Documented in docs/cli.md; scripts branch on these."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    BILLING = 4
    AUTH = 5
    RUN_FAILED = 6
    """A run, an evaluation, a release check or a test that was waited for ended badly."""
    GATE_CLOSED = 7
    """`prime eval gate`: the evaluation has a verdict, and it is no."""


class CliError(Exception):
    """What a person is told instead of a traceback. `fields` pairs the name of an input field with what is wrong with it."""

    def __init__(
        self,
        message: str,
        exit_code: ExitCode = ExitCode.ERROR,
        *,
        code: str = "error",
        hint: str = "",
        fields: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.message, self.exit_code, self.code, self.hint, self.fields = message, exit_code, code, hint, tuple(fields)

    def as_json(self) -> dict[str, Any]:
        fields = [{"field": name, "message": message} for name, message in self.fields]
        return {"error": {"message": self.message, "code": self.code, "hint": self.hint, "fields": fields}}


PIPE_WIDTH = 400
WORD_MAX_CHARACTERS = 48


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


def _remember_format(ctx: typer.Context, value: OutputFormat) -> OutputFormat:
    """Errors are printed by the root command, which has to know the format too."""
    ctx.find_root().meta["output"] = value
    return value


OutputOption = Annotated[
    OutputFormat, typer.Option("--output", "-o", help="table for people, json for scripts.", callback=_remember_format)
]

Column = tuple[str, Callable[[Mapping[str, Any]], Any]]
"""A table's heading, and how its cell is read from a row of the reply."""


class Terminal:
    """One command's way to talk. In JSON mode stdout holds exactly one JSON document (or JSON lines, for streams)."""

    def __init__(self, output: OutputFormat) -> None:
        self.is_json = output is OutputFormat.JSON
        # A pipe has no width: whoever reads it wants each row on one line.
        self.out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else PIPE_WIDTH)
        self.err = Console(stderr=True, highlight=False, soft_wrap=True)

    def data(self, reply: Any) -> None:
        """The reply as JSON; nothing in table mode, where the caller prints for people."""
        if self.is_json:
            sys.stdout.write(json.dumps(reply, indent=2, default=str) + "\n")

    def line(self, record: Any, text: str) -> None:
        """One item of a stream."""
        if self.is_json:
            sys.stdout.write(json.dumps(record, default=str) + "\n")
            sys.stdout.flush()
        else:
            self.out.print(text, markup=False)

    def table(self, reply: Any, rows: Iterable[Mapping[str, Any]], columns: Sequence[Column], *, empty: str) -> None:
        """A list for people, or the whole reply as JSON."""
        if self.is_json:
            return self.data(reply)
        rows = list(rows)
        if not rows:
            return self.note(empty)
        grid = Table(box=None, pad_edge=False, header_style="bold")
        cells = [[cell(read(row)) for row in rows] for _, read in columns]
        for (heading, _), texts in zip(columns, cells, strict=True):
            grid.add_column(heading, overflow="fold", no_wrap=all(is_word(text) for text in texts))
        for texts in zip(*cells, strict=True):
            grid.add_row(*texts)
        self.out.print(grid)
        return None

    def facts(self, reply: Any, facts: Iterable[tuple[str, Any]]) -> None:
        """One object for people, name and value a line, without what is absent; or the whole reply as JSON."""
        if self.is_json:
            return self.data(reply)
        grid = Table(box=None, pad_edge=False, show_header=False)
        grid.add_column(style="dim")
        grid.add_column(overflow="fold")
        for name, value in facts:
            if value not in (None, "", [], {}):
                grid.add_row(name, cell(value))
        self.out.print(grid)
        return None

    def note(self, text: str, *, style: str = "") -> None:
        self.err.print(text, style=style or None, markup=False)

    def success(self, text: str) -> None:
        self.note(f"✓ {text}", style="green")

    def link(self, url: str) -> None:
        self.note(url, style="cyan")

    def progress(self, *, unit: str = "") -> Progress:
        """A bar on stderr that leaves nothing behind in a pipe."""
        counts = [TextColumn(f"{{task.completed:,.0f}}/{{task.total:,.0f}} {unit}")] if unit else []
        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), *counts, TimeElapsedColumn()]
        return Progress(*columns, console=self.err, transient=True, disable=not self.err.is_terminal)

    def error(self, error: CliError) -> None:
        if self.is_json:
            sys.stderr.write(json.dumps(error.as_json()) + "\n")
            return
        self.err.print("error:", style="bold red", end=" ")
        self.err.print(error.message, markup=False)
        for name, message in error.fields:
            self.err.print(f"  {name}: {message}", markup=False)
        if error.hint:
            self.err.print(f"hint: {error.hint}", style="dim", markup=False)


def cell(value: Any) -> str:
    """How one value looks in a table: markup in data is data."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        value = ", ".join(f"{item:.4g}" if isinstance(item, float) else str(item) for item in value)
    elif isinstance(value, dict):
        value = json.dumps(value, default=str)
    return str(value).replace("[", r"\[")


def is_word(text: str) -> bool:
    """Whether a cell must stay in one piece: an id, a served name, a number."""
    return len(text) <= WORD_MAX_CHARACTERS and " " not in text


def moment(text: str | None) -> str | None:
    """An ISO time, shortened to the minute, as UTC."""
    return text[:16].replace("T", " ") if text else None


def last_words(row: Mapping[str, Any]) -> str:
    """The end of what a model said in a rollout: the last of its messages, on one line."""
    said = row.get("completion") or row.get("preview") or ""
    if isinstance(said, list) and said:
        said = said[-1].get("content") if isinstance(said[-1], dict) else said[-1]
    return " ".join(str(said).split())[:80]


def flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """A nested table as dotted names and values, as the command line spells them; what is absent is left out."""
    found: list[tuple[str, Any]] = []
    for key, value in sorted(table.items()):
        if isinstance(value, dict):
            found += flat(value, f"{prefix}{key}.")
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            found += [pair for index, item in enumerate(value) for pair in flat(item, f"{prefix}{key}.{index}.")]
        elif value not in (None, [], {}):
            found.append((f"{prefix}{key}", value))
    return found


def usd(amount: float | str | None) -> str:
    """To the micro-dollar, without idle zeros: a run on the tiny model costs less than a cent."""
    if amount is None:
        return "-"
    whole, _, decimals = f"{float(amount):,.6f}".partition(".")
    return f"${whole}.{decimals.rstrip('0').ljust(2, '0')}"

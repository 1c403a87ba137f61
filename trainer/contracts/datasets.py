"""A dataset file line by line: what a row may be, and why one is refused.

Knows JSON lines of three shapes: `{"messages", "tools"?}`, `{"prompt", "completion"}`, which means the same for one exchange, and
`{"text"}`. Refuses to know tokenizers and templates: whether a row fits a model is found out where the model's renderer is.
Upload and training read a file by `read_rows` alone, so that both keep and drop the same lines.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from trainer.contracts.base import PublicId, Sha256, Wire

FILE_BYTES_MAX = 64 * 2**20
LINE_BYTES_MAX = 2**20
ROWS_MAX = 200_000
MESSAGES_MAX = 1_000
REASON_LENGTH_MAX = 300
REASONS_NAMED_MAX = 5
PROBLEMS_MAX = 50
"""Dropped rows that a report names; the others are counted."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

DatasetKind = Literal["chat", "text"]


class RowRefused(ValueError):
    """A row that nothing can be learnt from; the text says why, to its author."""


class DatasetRefused(ValueError):
    """A file that is refused as a whole; the text says why, `report` what is known of its rows."""

    def __init__(self, message: str, report: "ImportReport | None" = None) -> None:
        super().__init__(message)
        self.report = report


class _Row(BaseModel):
    """Fields that only some templates read may stand beside the known ones."""

    model_config = ConfigDict(extra="allow", frozen=True)


class TextPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["text"]
    text: str


class ChatMessage(_Row):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    tool_calls: list[dict[str, Any]] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.tool_calls and self.role != "assistant":
            raise ValueError(f"a message of role {self.role} has tool_calls, which only the assistant makes")
        if self.content is None and not self.tool_calls:
            raise ValueError("a message has neither content nor tool_calls")
        return self


class ChatRow(_Row):
    """One conversation. Every assistant message is learnt."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MESSAGES_MAX)]
    tools: list[dict[str, Any]] | None = None

    @model_validator(mode="after")
    def _teaches(self) -> Self:
        if not any(message.role == "assistant" for message in self.messages):
            raise ValueError("no message is the assistant's, so there is nothing to learn")
        if self.messages[0].role == "assistant":
            raise ValueError("the first message is the assistant's, and nothing stands before it that it could answer")
        return self


class PromptRow(_Row):
    """The same in two fields: texts, or lists of messages."""

    prompt: str | list[ChatMessage]
    completion: str | list[ChatMessage]
    tools: list[dict[str, Any]] | None = None

    def as_chat(self) -> dict[str, Any]:
        return {"messages": [*_spelled("user", self.prompt), *_spelled("assistant", self.completion)], "tools": self.tools}


class TextRow(_Row):
    text: Annotated[str, Field(min_length=1)]


DatasetRow = ChatRow | TextRow


class Line(NamedTuple):
    """`number` counts from 1, `offset` is where the line begins in the file. Either `row` or `reason` is there."""

    number: int
    offset: int
    row: DatasetRow | None
    reason: str = ""


class RowProblem(Wire):
    line: int
    reason: str


class ImportReport(Wire):
    """What became of each row: `kept` and `dropped` are `rows` together. `problems` names the first dropped ones."""

    rows: int
    kept: int
    dropped: int
    reasons: dict[str, int] = {}
    """How many rows were dropped for each reason; only the commonest."""
    problems: list[RowProblem] = []

    @property
    def dropped_fraction(self) -> float:
        return self.dropped / self.rows if self.rows else 0.0

    def words(self) -> str:
        named = "; ".join(f"line {problem.line}: {problem.reason}" for problem in self.problems[:5])
        return f"{self.kept} of {self.rows} rows are kept, {self.dropped} dropped" + (f" ({named})" if named else "")

    def reasons_in_words(self) -> str:
        """The commonest reasons with their counts."""
        named = [f"{count} × {reason}" for reason, count in list(self.reasons.items())[:REASONS_NAMED_MAX]]
        rest = self.dropped - sum(list(self.reasons.values())[:REASONS_NAMED_MAX])
        return "; ".join([*named, f"{rest} for other reasons"] if rest else named)


class DatasetSpec(Wire):
    """A dataset that a run learns from, as the orchestrator is told of it."""

    dataset_id: PublicId
    name: str
    kind: DatasetKind
    sha256: Sha256
    size_bytes: Annotated[int, Field(ge=1, le=FILE_BYTES_MAX)]


def read_rows(file: BinaryIO, kind: DatasetKind | None = None) -> Iterator[Line]:
    """Each line that is not blank. The first good row decides the kind where none is given. Raises DatasetRefused for what is
    wrong with the whole file: a byte order mark, too many rows."""
    offset, rows = 0, 0
    for number, raw, size in _raw_lines(file):
        if number == 1 and raw.startswith(BYTE_ORDER_MARK):
            raise DatasetRefused("line 1: the file begins with a byte order mark; save it as UTF-8 without one")
        if raw.strip():
            rows += 1
            if rows > ROWS_MAX:
                raise DatasetRefused(f"line {number}: more than {ROWS_MAX} rows; cut the file in several datasets")
            try:
                row = parse_row(raw)
                kind = kind or kind_of(row)
                if kind_of(row) != kind:
                    raise RowRefused(f"a row of {kind_of(row)} in a file of {kind} rows; one file holds one kind")
                yield Line(number, offset, row)
            except RowRefused as refused:
                yield Line(number, offset, None, str(refused)[:REASON_LENGTH_MAX])
        offset += size


def parse_row(raw: bytes) -> DatasetRow:
    """One line as a row; prompt and completion become a conversation. Raises RowRefused."""
    if len(raw) > LINE_BYTES_MAX:
        raise RowRefused(f"longer than {LINE_BYTES_MAX} bytes")
    try:
        fields = json.loads(raw, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise RowRefused(f"not UTF-8: {error.reason} at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise RowRefused(f"not JSON: {error.msg} at column {error.colno}") from None
    except (RecursionError, ValueError) as error:
        raise RowRefused(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise RowRefused("not a JSON object")
    if b"\\u" in raw:
        _refuse_half_characters(fields)
    return _shaped(fields)


def kind_of(row: DatasetRow) -> DatasetKind:
    return "text" if isinstance(row, TextRow) else "chat"


def report_of(outcomes: Iterable[tuple[int, str]]) -> ImportReport:
    """From (line, reason) of each row, where a kept one has no reason."""
    kept, reasons = 0, Counter[str]()
    problems: list[RowProblem] = []
    for line, reason in outcomes:
        if not reason:
            kept += 1
            continue
        reasons[reason] += 1
        if len(problems) < PROBLEMS_MAX:
            problems.append(RowProblem(line=line, reason=reason))
    dropped = reasons.total()
    return ImportReport(
        rows=kept + dropped, kept=kept, dropped=dropped, reasons=dict(reasons.most_common(PROBLEMS_MAX)), problems=problems
    )


def check_report(report: ImportReport, dropped_max: float) -> None:
    """Raises DatasetRefused where nothing is kept, or more than `dropped_max` of the rows is dropped."""
    if not report.kept:
        raise DatasetRefused(f"nothing to learn from: {report.words()}", report)
    if report.dropped_fraction > dropped_max:
        raise DatasetRefused(f"{report.words()}; more than dropped_max = {dropped_max:g} of them", report)


def _raw_lines(file: BinaryIO) -> Iterator[tuple[int, bytes, int]]:
    """(number, what is read of the line, its whole size in bytes): of a line that is too long only so much as shows it."""
    number = 0
    while raw := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        size = len(raw)
        if not raw.endswith(b"\n"):
            while rest := file.readline(LINE_BYTES_MAX):
                size += len(rest)
                if rest.endswith(b"\n"):
                    break
        yield number, raw, size


def _shaped(fields: dict[str, Any]) -> DatasetRow:
    shapes = [name for name in ("messages", "prompt", "text") if name in fields]
    if len(shapes) != 1:
        found = " and ".join(shapes) or ", ".join(map(repr, list(fields)[:5])) or "nothing"
        raise RowRefused(f"a row has messages, prompt and completion, or text, one of them; here is {found}")
    try:
        if shapes == ["text"]:
            return TextRow.model_validate(fields)
        if shapes == ["prompt"]:
            fields = PromptRow.model_validate(fields).as_chat()
        return ChatRow.model_validate(fields)
    except ValidationError as error:
        raise RowRefused(_words(error)) from None


def _words(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return f"{field}: {first['msg']}" if field else str(first["msg"]).removeprefix("Value error, ")


def _spelled(role: str, said: str | list[ChatMessage]) -> list[dict[str, Any]]:
    if isinstance(said, str):
        return [{"role": role, "content": said}]
    return [message.model_dump(exclude_none=True) for message in said]


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _refuse_half_characters(fields: dict[str, Any]) -> None:
    r"""`\ud800` alone is half a character: text that no tokenizer takes."""
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RowRefused("half a character: a \\u escape without its second half") from None

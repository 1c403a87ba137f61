"""Exceptions and recorded errors as `TenantError`: type, message, and the innermost line of the tenant's own code.

Knows tracebacks and where a release is installed. Refuses to know outcomes.
"""

import re
import sys
import traceback
from collections.abc import Iterator
from typing import Any, Protocol

from trainer.contracts.rollouts import TEXT_MAX, TenantError

_MODULE_MAX, _NAME_MAX = 512, 128
_TRACEBACK_LINE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


class Recorded(Protocol):
    """An error as the library keeps it."""

    type: str
    message: str
    traceback: str | None


def from_exception(error: BaseException, prefix: str = sys.prefix) -> TenantError:
    """Frames of the whole chain of causes count: the library wraps what a tenant raised."""
    frames = [frame for frame in _chain_frames(error) if is_tenant(frame[0], prefix)]
    if frames and isinstance(error, ModuleNotFoundError) and isinstance(error.__cause__, ModuleNotFoundError):
        # The library says that the environment is not installed; it is, and what it imports is not.
        error = error.__cause__
    text = f"the environment called sys.exit({error.code!r})" if isinstance(error, SystemExit) else str(error)
    return at_place(type(error).__name__, text, frames[-1] if frames else None)


def from_record(error: Recorded, prefix: str = sys.prefix) -> TenantError:
    """An error that the library recorded on a trace or an episode, its traceback kept as text."""
    found = ((file, int(line), function) for file, line, function in _TRACEBACK_LINE.findall(error.traceback or ""))
    frames = [frame for frame in found if is_tenant(frame[0], prefix)]
    return at_place(error.type, error.message, frames[-1] if frames else None)


def clean(text: str, limit: int) -> str:
    """At most `limit` characters that can be sent and stored: a lone surrogate in tenant text would break the line it travels
    in, a NUL the database's row."""
    return text[:limit].encode(errors="replace").decode().replace("\0", "\ufffd")


def at_place(kind: str, message: str, frame: tuple[str, int, str] | None, *, function: str | None = None) -> TenantError:
    """`frame` is (file, line, function) in the tenant's code; without one, `function` alone may be known."""
    place: dict[str, Any] = {"function": clean(function, _NAME_MAX) if function else None}
    if frame:
        file, line, function = frame
        module = file.split("site-packages/")[-1]
        place = {"module": clean(module[-_MODULE_MAX:], _MODULE_MAX), "line": line, "function": clean(function, _NAME_MAX)}
    return TenantError(type=clean(kind, _NAME_MAX), message=clean(message, TEXT_MAX), **place)


def _chain_frames(error: BaseException) -> Iterator[tuple[str, int, str]]:
    """(file, line, function) from the outermost error to its first cause."""
    current: BaseException | None = error
    while current is not None:
        for frame in traceback.extract_tb(current.__traceback__):
            yield frame.filename, frame.lineno or 0, frame.name
        if isinstance(current, SyntaxError) and current.filename:
            yield current.filename, current.lineno or 0, "<module>"
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def is_tenant(file: str, prefix: str) -> bool:
    """Below the release's own environment; the base's packages live under another prefix."""
    return file.startswith(f"{prefix}/")

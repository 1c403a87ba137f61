"""Tool calls inside an answer's text (the Hermes format: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`). Pure text.

Knows one parser by the name that the catalogue uses. What does not parse stays text: the client sees what the model said.
"""

import json
import secrets
from dataclasses import dataclass

OPEN, CLOSE = "<tool_call>", "</tool_call>"
PARSERS = frozenset({"hermes"})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is JSON text, as OpenAI's clients expect it."""

    id: str
    name: str
    arguments: str

    def body(self) -> dict[str, object]:
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


def split_tool_calls(text: str) -> tuple[str, list[ToolCall]]:
    """(text outside calls, calls in order). A block that is no valid call is left in the text."""
    content, calls, position = "", [], 0
    while (start := text.find(OPEN, position)) >= 0:
        end = text.find(CLOSE, start)
        call = _parse(text[start + len(OPEN) : end]) if end >= 0 else None
        if call is None:
            content, position = content + text[position : start + len(OPEN)], start + len(OPEN)
            continue
        content, position = content + text[position:start], end + len(CLOSE)
        calls.append(call)
    return (content + text[position:]).strip() if calls else text, calls


def _parse(block: str) -> ToolCall | None:
    try:
        call = json.loads(block)
    except ValueError:
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall("call_" + secrets.token_hex(12), call["name"], text)


class ToolCallStream:
    """Splits growing text into what may be shown now and what may be a tool call, which waits for the end."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Text that cannot belong to a call."""
        self._held += text
        start = self._held.find(OPEN)
        if start < 0:
            start = len(self._held) - _overlap(self._held)
        shown, self._held = self._held[:start], self._held[start:]
        return shown

    def finish(self) -> tuple[str, list[ToolCall]]:
        return split_tool_calls(self._held)


def _overlap(text: str) -> int:
    """Length of the longest end of `text` that begins the opening marker."""
    return next((size for size in range(len(OPEN) - 1, 0, -1) if text.endswith(OPEN[:size])), 0)

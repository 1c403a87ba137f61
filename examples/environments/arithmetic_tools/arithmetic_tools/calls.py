"""How well formed a first reply is as a tool call. Plain functions of what was said.

Knows the tools' names and the Hermes spelling, `<tool_call>{"name": …, "arguments": {…}}</tool_call>`. Refuses to know whether
the right tool was called.
"""

import json

TOOLS = ("add", "sub", "max", "min")
OPEN, CLOSE = "<tool_call>", "</tool_call>"

NOTHING, OPENED, CLOSED, PARSED, WELL_FORMED = 0.0, 0.25, 0.5, 0.75, 1.0


def call_score(text: str, calls: list[tuple[str, str]]) -> float:
    """Of a reply: `text` is what it says outside of calls, `calls` its (name, arguments as JSON text).

    0.25 for an opening tag, 0.5 for a closed block, 0.75 for a call that parses, 1.0 for exactly one call of a known tool with
    two whole numbers `a` and `b`, and nothing else said. The steps let a model that rarely calls a tool learn to.
    """
    if calls:
        alone = len(calls) == 1 and not text.strip()
        return WELL_FORMED if alone and _is_good(*calls[0]) else PARSED
    if OPEN not in text:
        return NOTHING
    return CLOSED if CLOSE in text.split(OPEN, 1)[1] else OPENED


def _is_good(name: str, arguments: str) -> bool:
    try:
        values = json.loads(arguments)
    except ValueError:
        return False
    return name in TOOLS and isinstance(values, dict) and set(values) == {"a", "b"} and all(map(_is_whole, values.values()))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def call_text(name: str, a: int, b: int) -> str:
    """A well-formed call, as a model writes it."""
    return OPEN + json.dumps({"name": name, "arguments": {"a": a, "b": b}}) + CLOSE


def last_word(reply: str) -> str:
    """The last word without the full stop that may follow it."""
    words = reply.split()
    return words[-1].rstrip(".") if words else ""

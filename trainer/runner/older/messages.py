"""Messages of this library as text: dicts in a dataset's rows, objects in what was played.

Knows both shapes. Refuses to cut: who shows a text knows how much of it.
"""

from typing import Any


def text_of(message: Any) -> str:
    """The text of a message, its parts joined; pictures have none."""
    content = field(message, "content")
    if isinstance(content, list):
        return " ".join(str(field(part, "text") or "") for part in content)
    return "" if content is None else str(content)


def field(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)

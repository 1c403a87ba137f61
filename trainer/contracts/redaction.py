"""Masks values in texts, in every spelling in which they are likely to travel: as they are, in base64, in hex, quoted for a URL
or for JSON.

Knows spellings. Refuses to know whose the values are, and to guess: what looks like a secret and was not taught is left alone.
A text that holds half a value keeps that half, so texts are masked before they are cut.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "[redacted]"
SECRET_LENGTH_MIN = 8
"""A shorter value would mask ordinary words: it is not masked."""
LINE_LENGTH_MIN = 16
"""Of a value of several lines, such as a private key, each line from this length on is masked by itself: logs come by line."""
BASE64_LINE = 76


class Redactor:
    """Only grows: what it was taught once it masks for good, also after the value was replaced or revoked."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._spellings: tuple[str, ...] = ()
        self.learn(values)

    def learn(self, values: Iterable[str]) -> None:
        found = {spelling for value in values for spelling in spellings(value)}
        # The longest first: what is left of a longer one would no longer be found.
        self._spellings = tuple(sorted(found.union(self._spellings), key=len, reverse=True))

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to mask."""
        return not self._spellings

    def text(self, text: str) -> str:
        for spelling in self._spellings:
            text = text.replace(spelling, MASK)
        return text

    def document(self, node: Any) -> Any:
        """A copy of a JSON document with every text in it masked, names too. The same object where there is nothing to mask."""
        if self.is_idle:
            return node
        if isinstance(node, str):
            return self.text(node)
        if isinstance(node, dict):
            return {self.document(name): self.document(value) for name, value in node.items()}
        return [self.document(value) for value in node] if isinstance(node, list) else node


def spellings(value: str) -> set[str]:
    """Every text that is masked for `value`; none where it is too short."""
    lines = {line.strip() for line in value.splitlines() if len(line.strip()) >= LINE_LENGTH_MIN}
    parts = {part for part in (value, value.strip()) if len(part) >= SECRET_LENGTH_MIN}
    return {spelling for part in parts | lines for spelling in _spelled(part)} if parts else set()


def _spelled(value: str) -> Iterator[str]:
    data = value.encode(errors="replace")
    yield from (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1])
    yield from (data.hex(), data.hex().upper())
    yield from _quoted(value, data)
    for text in _in_base64(data):
        yield from (text, text.replace("+", "-").replace("/", "_"))


def _quoted(value: str, data: bytes) -> Iterator[str]:
    """With and without a quoted slash, spaces as `+`, every byte quoted; the digits of the quotes in either case."""
    for text in (quote(value, safe="", errors="replace"), quote(value, errors="replace"), quote_plus(value, errors="replace")):
        yield from (text, _lower_quotes(text))
    every = "".join(f"%{byte:02X}" for byte in data)
    yield from (every, every.lower())


def _lower_quotes(text: str) -> str:
    head, *rest = text.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])


def _in_base64(data: bytes) -> Iterator[str]:
    """Alone: with padding, without it, and broken into lines; and the part of its characters that no neighbour changes where it
    stands inside something longer (`user:password`), at each of the three places where it can begin in a group of bytes."""
    whole = base64.b64encode(data).decode()
    yield from (whole, whole.rstrip("="))
    if len(whole) > BASE64_LINE:
        lines = (whole[start : start + BASE64_LINE] for start in range(0, len(whole), BASE64_LINE))
        yield from (line for line in lines if len(line) >= SECRET_LENGTH_MIN)
        yield base64.encodebytes(data).decode().strip()
    for shift, mixed in ((0, 0), (1, 2), (2, 3)):
        text = base64.b64encode(bytes(shift) + data).decode()
        # Where it does not fill its last group, some bits of the last character are the next byte's.
        yield text[mixed:] if not text.endswith("=") else text[mixed:].rstrip("=")[:-1]

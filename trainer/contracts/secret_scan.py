"""Finds keys that were left in a source tree: one rule for `prime push`, before anything is sent, and for the hub.

Knows the spellings of keys that can be told from other text. Refuses to guess: a password without a known form is not found. A
line that only looks like a key passes with the words `rootstock: not-a-secret` on it. No finding ever holds the key.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

MARKER: Final = b"rootstock: not-a-secret"
FINDINGS_MAX: Final = 20
LINE_MAX_BYTES: Final = 64 * 1024
OVERLAP_BYTES: Final = 4096
"""Longer lines are searched in pieces which share this much, more than any key has."""
DISTINCT_MIN: Final = 8
"""`ghp_xxxxxxxx…` stands for a key and is none."""


class Finding(NamedTuple):
    """`kind` says whose key it is; `line` counts from 1."""

    line: int
    kind: str

    def __str__(self) -> str:
        return f"line {self.line} holds {self.kind}"


class Spelling(NamedTuple):
    """`prefix` is looked for first, since that is fast."""

    prefix: bytes
    kind: str
    pattern: re.Pattern[bytes]


def _spelled(prefix: str, kind: str, rest: str) -> Spelling:
    return Spelling(prefix.encode(), kind, re.compile(rf"(?<![A-Za-z0-9]){re.escape(prefix)}{rest}".encode()))


SPELLINGS: Final = (
    _spelled("rsk_", "an API key of Rootstock", r"[a-z0-9]{12}_[A-Za-z0-9]{40}"),
    _spelled("AKIA", "an access key of AWS", r"(?![A-Z0-9]*EXAMPLE)[A-Z0-9]{16}"),
    _spelled("ASIA", "an access key of AWS", r"[A-Z0-9]{16}"),
    *(_spelled(f"gh{letter}_", "a token of GitHub", r"[A-Za-z0-9]{36}") for letter in "pousr"),
    _spelled("github_pat_", "a token of GitHub", r"[A-Za-z0-9_]{60,}"),
    _spelled("glpat-", "a token of GitLab", r"[\w-]{20}"),
    _spelled("hf_", "a token of Hugging Face", r"[A-Za-z0-9]{34}"),
    _spelled("sk-ant-", "an API key of Anthropic", r"[\w-]{32,}"),
    _spelled("sk-proj-", "an API key of OpenAI", r"[\w-]{32,}"),
    _spelled("sk-or-v1-", "an API key of OpenRouter", r"[0-9a-f]{64}"),
    _spelled("sk-", "an API key of OpenAI", r"[A-Za-z0-9]{48}"),
    _spelled("sk_live_", "a secret key of Stripe", r"[A-Za-z0-9]{24,}"),
    _spelled("rk_live_", "a secret key of Stripe", r"[A-Za-z0-9]{24,}"),
    _spelled("AIza", "an API key of Google", r"[\w-]{35}"),
    *(_spelled(f"xox{letter}-", "a token of Slack", r"[0-9A-Za-z-]{20,}") for letter in "abprs"),
    _spelled("npm_", "a token of npm", r"[A-Za-z0-9]{36}"),
    _spelled("pypi-AgEIcHlwaS5vcmc", "a token of PyPI", r"[\w-]{50,}"),
    _spelled("-----BEGIN ", "a private key", r"(?:[A-Z]+ )?PRIVATE KEY(?: BLOCK)?-----"),
)


class SecretScan:
    """The keys in one file, fed chunk by chunk. A file with a zero byte in its first chunk is no text and is passed over."""

    def __init__(self) -> None:
        self._found: set[Finding] = set()
        self._line, self._rest = 1, b""
        self._is_text: bool | None = None

    def feed(self, chunk: bytes) -> None:
        if self._is_text is None:
            self._is_text = b"\0" not in chunk
        if not self._is_text:
            return
        text = self._rest + chunk
        whole = text.rfind(b"\n") + 1
        if whole == 0 and len(text) < LINE_MAX_BYTES:
            self._rest = text
            return
        self._scan(text[:whole] or text)
        kept = whole or len(text) - OVERLAP_BYTES
        self._line += text.count(b"\n", 0, kept)
        self._rest = text[kept:]

    def findings(self) -> list[Finding]:
        """Ends the file."""
        self._scan(self._rest)
        self._rest = b""
        return sorted(self._found)[:FINDINGS_MAX]

    def _scan(self, text: bytes) -> None:
        for spelling in SPELLINGS:
            if spelling.prefix in text:
                for match in spelling.pattern.finditer(text):
                    self._note(text, match, spelling.kind)

    def _note(self, text: bytes, match: re.Match[bytes], kind: str) -> None:
        start, end = text.rfind(b"\n", 0, match.start()) + 1, text.find(b"\n", match.end())
        line = text[start : end if end >= 0 else len(text)]
        if len(set(match[0])) >= DISTINCT_MIN and MARKER not in line and len(self._found) < FINDINGS_MAX:
            self._found.add(Finding(self._line + text.count(b"\n", 0, match.start()), kind))


def scan(chunks: Iterable[bytes]) -> list[Finding]:
    """The keys in one file."""
    scanned = SecretScan()
    for chunk in chunks:
        scanned.feed(chunk)
    return scanned.findings()

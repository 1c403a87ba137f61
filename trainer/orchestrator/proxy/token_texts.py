"""The text of token ids, for people who read a rollout, and the ids of a text that stands before one.

Knows the base model's tokenizer file. Refuses to tokenize what is trained on: those tokens are the ones that were sampled.
"""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer

TOKENIZER_FILE = "tokenizer.json"
BROKEN = "\N{REPLACEMENT CHARACTER}"


class TokenTexts:
    """Reads `folder/tokenizer.json` at first use. A model without that file has ids alone."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._known: dict[int, str] = {}

    def of(self, token_ids: Iterable[int]) -> dict[str, str]:
        """Id (as a string, for JSON) to text."""
        if self._tokenizer is None:
            return {}
        return {str(token): self._text(self._tokenizer, token) for token in sorted(token_ids)}

    def spell(self, text: str) -> list[int]:
        """The ids of a text, in which special tokens may be written out; none is added. Raises LookupError where there is no
        tokenizer."""
        if self._tokenizer is None:
            raise LookupError(f"{self._folder} has no {TOKENIZER_FILE}: text cannot be turned into token ids")
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    @cached_property
    def _tokenizer(self) -> Tokenizer | None:
        path = self._folder / TOKENIZER_FILE
        return Tokenizer.from_file(str(path)) if path.is_file() else None

    def _text(self, tokenizer: Tokenizer, token: int) -> str:
        if token not in self._known:
            text = tokenizer.decode([token], skip_special_tokens=False)
            # A part of a character has no text of its own; the vocabulary's spelling tells such parts apart.
            self._known[token] = (tokenizer.id_to_token(token) or BROKEN) if BROKEN in text or not text else text
        return self._known[token]

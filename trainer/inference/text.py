"""Token ids ↔ text: the tokenizer file, the chat template, and text that grows token by token. Knows no model and no HTTP."""

import json
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from trainer.inference.errors import BadRequest


class TextCodec:
    """The tokenizer folder of a base model (`tokenizer.json`, `tokenizer_config.json`, perhaps `chat_template.jinja`)."""

    def __init__(self, folder: Path):
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        config = json.loads((folder / "tokenizer_config.json").read_text())
        template = folder / "chat_template.jinja"
        source = template.read_text() if template.exists() else config["chat_template"]
        self._special = {name: _token_text(config.get(name)) for name in ("bos_token", "eos_token", "pad_token", "unk_token")}
        self._template = _environment().from_string(source)

    @property
    def eos_id(self) -> int | None:
        text = self._special["eos_token"]
        return self.tokenizer.token_to_id(text) if text else None

    @property
    def eos_text(self) -> str | None:
        return self._special["eos_token"]

    @property
    def start_id(self) -> int | None:
        """What stands before a text that nothing precedes: the token that begins one, else the one that ends another."""
        text = self._special["bos_token"] or self._special["eos_token"]
        return self.tokenizer.token_to_id(text) if text else None

    def render_chat(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> list[int]:
        """Token ids of a dialogue up to the assistant's turn. Raises BadRequest when the template refuses the messages."""
        return self.encode(self.render_text(messages, tools, is_prompt=True))

    def render_text(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, *, is_prompt: bool) -> str:
        """A dialogue as the template spells it, with the beginning of the assistant's turn where it `is_prompt`. Raises
        BadRequest."""
        try:
            return self._template.render(messages=messages, tools=tools, add_generation_prompt=is_prompt, **self._special)
        except (TemplateError, TypeError) as error:
            raise BadRequest(f"the chat template refuses these messages: {error}", param="messages") from error

    def encode(self, text: str) -> list[int]:
        """Token ids of a text in which special tokens may be written out; none is added."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def token_text(self, token_id: int) -> str:
        return self.tokenizer.decode([token_id], skip_special_tokens=False)


def _token_text(entry: str | dict[str, Any] | None) -> str | None:
    return entry["content"] if isinstance(entry, dict) else entry


def _environment() -> ImmutableSandboxedEnvironment:
    """What chat templates expect. Sandboxed: a template comes with a model and is not our code."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])

    def tojson(
        value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    return environment


class TextStream:
    """Text of one answer as its tokens come. Holds back half characters, and whatever may still become a stop string.

    `stopped` is True once a stop string was found; neither it nor anything behind it is ever given out.
    """

    def __init__(self, codec: TextCodec, *, stop_strings: tuple[str, ...] = (), skip_special_tokens: bool = True):
        self._tokenizer = codec.tokenizer
        self._stream = DecodeStream(skip_special_tokens=skip_special_tokens)
        self._skip_special_tokens = skip_special_tokens
        self._stop_strings = stop_strings
        self._token_ids: list[int] = []
        self._decoded = ""
        self._given = 0
        self.stopped = False

    def feed(self, token_ids: list[int]) -> str:
        """The text that these tokens complete."""
        for token_id in token_ids:
            if self.stopped:
                break
            self._token_ids.append(token_id)
            self._decoded += self._stream.step(self._tokenizer, token_id) or ""
            self._cut_at_stop()
        return self._give(len(self._decoded) if self.stopped else self._safe_length())

    def finish(self) -> str:
        """What was held back: the answer is over, so it is part of it."""
        if not self.stopped:
            whole = self._tokenizer.decode(self._token_ids, skip_special_tokens=self._skip_special_tokens)
            self._decoded = whole if whole.startswith(self._decoded) else self._decoded
        return self._give(len(self._decoded))

    def _cut_at_stop(self) -> None:
        found = [place for stop in self._stop_strings if (place := self._decoded.find(stop, self._given)) >= 0]
        if found:
            self._decoded, self.stopped = self._decoded[: min(found)], True

    def _safe_length(self) -> int:
        """Length of the text that no stop string can begin in."""
        longest = max(map(len, self._stop_strings), default=0)
        for length in range(min(longest - 1, len(self._decoded) - self._given), 0, -1):
            if any(stop.startswith(self._decoded[-length:]) for stop in self._stop_strings):
                return len(self._decoded) - length
        return len(self._decoded)

    def _give(self, end: int) -> str:
        text, self._given = self._decoded[self._given : end], max(end, self._given)
        return text

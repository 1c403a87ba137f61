"""A dataset's row as token streams, and which of their tokens are learnt.

Knows the model's chat template as the engine renders it (`trainer.inference.text`): a conversation is spelled exactly as a
request for its next reply would be. Refuses to guess what a template writes: the generation prompt, whatever its length, and
what closes a reply are measured on the row itself.

A turn of the assistant is (prompt, said): the prompt is the messages before it with the generation prompt; what was said ends
with the end-of-sequence token. Turns whose prompt goes on from the stream so far share it. Where a template drops or rewrites
what the assistant said earlier (its thoughts, say), the next turn begins a stream of its own, so that every reply is learnt once,
behind the very prompt that it will be asked with. Such a row is longer, never dropped.
"""

from dataclasses import dataclass, field
from typing import Any

from trainer.contracts.datasets import ChatRow, DatasetRow, RowRefused, TextRow
from trainer.inference.chat_request import template_messages
from trainer.inference.errors import BadRequest
from trainer.inference.text import TextCodec

THOUGHT = "<think>\n{}\n</think>\n\n"


@dataclass(slots=True)
class RowStream:
    """T token ids, of which the `learnt` ones are trained on. `text` is what they spell."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    learnt: list[bool] = field(default_factory=list)

    def extend(self, text: str, token_ids: list[int], *, learnt: bool) -> None:
        self.text += text
        self.token_ids += token_ids
        self.learnt += [learnt] * len(token_ids)


class RowRenderer:
    """`context_tokens` is the longest stream that the model takes."""

    def __init__(self, codec: TextCodec, *, context_tokens: int):
        self._codec = codec
        self._context_tokens = context_tokens

    def streams(self, row: DatasetRow) -> list[RowStream]:
        """One or more, each with something learnt. Raises RowRefused where the model cannot take the row."""
        streams = self._of_text(row) if isinstance(row, TextRow) else self._of_chat(row)
        longest = max(len(stream.token_ids) for stream in streams)
        if longest > self._context_tokens:
            raise RowRefused(f"longer than the model's context of {self._context_tokens} tokens")
        return streams

    def _of_text(self, row: TextRow) -> list[RowStream]:
        """Cut to the context. A piece begins with the token before it, which is given and not learnt again, so that each token
        of the text is learnt once."""
        ids = self._codec.encode(row.text)
        eos = self._codec.eos_id
        ids = ids if eos is None else [*ids, eos]
        ids = ids if self._codec.start_id is None else [self._codec.start_id, *ids]
        size = self._context_tokens - 1
        pieces = [ids[start : start + size + 1] for start in range(0, len(ids) - 1, size)]
        if not pieces:
            raise RowRefused("the text is a single token, and nothing stands before it")
        return [RowStream(row.text, piece, [False, *[True] * (len(piece) - 1)]) for piece in pieces]

    def _of_chat(self, row: ChatRow) -> list[RowStream]:
        messages = [message.model_dump(exclude_none=True) for message in row.messages]
        streams: list[RowStream] = []
        try:
            messages = template_messages(messages)
            for index, message in enumerate(messages):
                if message["role"] == "assistant":
                    self._take_turn(streams, messages[: index + 1], row.tools)
        except BadRequest as error:
            raise RowRefused(str(error)) from None
        return streams

    def _take_turn(self, streams: list[RowStream], messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> None:
        """Learn the last of `messages` behind the others."""
        prompt = self._codec.render_text(messages[:-1], tools, is_prompt=True)
        said = self._said(prompt, messages, tools)
        if not streams or not prompt.startswith(streams[-1].text):
            streams.append(RowStream())
        stream = streams[-1]
        observed = prompt[len(stream.text) :]
        stream.extend(observed, self._codec.encode(observed), learnt=False)
        stream.extend(said, self._codec.encode(said), learnt=True)

    def _said(self, prompt: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> str:
        """What the template writes behind the prompt, up to the token that ends the reply."""
        whole = self._codec.render_text(messages, tools, is_prompt=False)
        content = messages[-1]["content"].strip()
        if whole.startswith(prompt) and content in whole[len(prompt) :]:
            return self._ended(whole[len(prompt) :])
        return self._spoken(prompt, messages, tools, whole)

    def _spoken(self, prompt: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, whole: str) -> str:
        """For a template that does not render a reply as the model says it: thoughts are cut, or the generation prompt has begun
        them. The words are the row's own, less what the prompt says already."""
        before = self._codec.render_text(messages[:-1], tools, is_prompt=False)
        opening = prompt.removeprefix(before) if prompt.startswith(before) else ""
        reply = messages[-1]
        thought = THOUGHT.format(reply["reasoning_content"]) if reply.get("reasoning_content") else ""
        words = thought + reply["content"]
        begun = _overlap(opening, words)
        if "<think>" in opening and "</think>" not in opening and not begun:
            raise RowRefused("the model's template begins each reply with a thought (<think>), and this reply has none")
        visible = words.rpartition("</think>")[2].strip()
        _, found, closing = whole.rpartition(visible)
        if reply.get("tool_calls") or not visible or not found:
            raise RowRefused("the model's template rewrites this reply, so that what the model would say is not known")
        return self._ended(words[begun:].rstrip() + closing)

    def _ended(self, text: str) -> str:
        """Up to the end-of-sequence token, which the model says too; what a template writes behind it is not learnt."""
        eos = self._codec.eos_text
        end = text.rfind(eos) if eos else -1
        return text if eos is None or end < 0 else text[: end + len(eos)]


def _overlap(opening: str, words: str) -> int:
    """How many characters at the end of `opening` are those that `words` begin with."""
    return next((size for size in range(min(len(opening), len(words)), 0, -1) if opening.endswith(words[:size])), 0)

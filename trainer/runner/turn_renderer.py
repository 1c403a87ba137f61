"""Messages to tokens and back, for models whose chat template closes every turn with the end-of-sequence token.

Knows the tokenizer's chat template and the Hermes spelling of tool calls. Refuses to tokenize again what the engine sampled: the
prompt of a later turn is the ids of the turns before, exactly as they were, and then the new messages. A template that drops
or rewrites what the model said earlier can therefore not change the history that a rollout continues.
"""

import json
import re
from dataclasses import replace
from typing import Any

from renderers.base import ParsedResponse, ParsedToolCall, RenderedTokens
from renderers.configs import DefaultRendererConfig
from renderers.default import DefaultRenderer

__all__ = ["TurnRenderer"]

_TURNS_BEFORE: list[dict[str, Any]] = [{"role": "user", "content": "."}, {"role": "assistant", "content": "."}]
"""Stand for the conversation so far when new messages are rendered: what follows them is what the template adds."""
_CALL = re.compile(r"<tool_call>((?:(?!<tool_call>).)*?)</tool_call>", re.DOTALL)


class TurnRenderer(DefaultRenderer):
    """`[renderer] name = "custom"`, `import_path = "trainer.runner.turn_renderer.TurnRenderer"` in a catalogue entry."""

    config_class = DefaultRendererConfig

    @property
    def supports_tools(self) -> bool:
        return True

    @property
    def supports_process_multimodal(self) -> bool:
        """The library asks before it shows us a picture: we say yes to refuse it in words."""
        return True

    def render(self, messages: list[Any], *, process_multimodal: bool = True, **options: Any) -> RenderedTokens:
        """Raises ValueError for anything but text: a template would spell a picture's address, and the model would read that."""
        for number, message in enumerate(messages):
            content = message.get("content")
            for place, part in enumerate(content if isinstance(content, list) else ()):
                kind = part.get("type") if isinstance(part, dict) else None
                if kind not in (None, "text"):
                    raise ValueError(f"messages.{number}.content.{place}: {kind}: the base model reads text alone")
        return super().render(messages, **options)

    def parse_response(
        self, token_ids: list[int], *, tools: list[Any] | None = None, prompt_ids: list[int] | None = None
    ) -> ParsedResponse:
        # The renderers of the older interface know no prompt here, and give none.
        asked = {} if prompt_ids is None else {"prompt_ids": prompt_ids}
        parsed = super().parse_response(token_ids, tools=tools, **asked)
        content, calls = split_tool_calls(parsed.content)
        return replace(parsed, content=content, tool_calls=calls)

    def bridge_to_next_turn(
        self,
        previous_prompt_ids: list[int],
        previous_completion_ids: list[int],
        new_messages: list[Any],
        *,
        tools: list[Any] | None = None,
        process_multimodal: bool = True,
    ) -> RenderedTokens | None:
        """The next prompt: `previous_prompt_ids` and `previous_completion_ids` as they are, closed where the reply was cut off,
        then `new_messages`. None where the template does not allow it: the library then renders the whole conversation."""
        close = self._tokenizer.eos_token_id
        if close is None or any(message.get("role") == "assistant" for message in new_messages):
            return None
        rendered = self.render([*_TURNS_BEFORE, *new_messages], tools=tools, add_generation_prompt=True)
        start = _end_of_turn(rendered, len(_TURNS_BEFORE) - 1, close)
        if start is None:
            return None
        spoken = [*previous_prompt_ids, *previous_completion_ids]
        if spoken[-1] != close:
            spoken.append(close)
        owners = [max(index - len(_TURNS_BEFORE), -1) for index in rendered.message_indices[start:]]
        return RenderedTokens(
            token_ids=spoken + rendered.token_ids[start:],
            message_indices=[-1] * len(spoken) + owners,
            message_roles=rendered.message_roles[len(_TURNS_BEFORE) :],
            message_tool_names=rendered.message_tool_names[len(_TURNS_BEFORE) :],
        )


def _end_of_turn(rendered: RenderedTokens, message: int, close: int) -> int | None:
    """Position behind the token that closes `message`, or None where nothing closes it."""
    closing = [
        position
        for position, (token, owner) in enumerate(zip(rendered.token_ids, rendered.message_indices, strict=True))
        if token == close and owner == message
    ]
    return closing[-1] + 1 if closing else None


def split_tool_calls(text: str) -> tuple[str, list[ParsedToolCall]]:
    """(text outside calls, calls in order). A block that is no valid call stays in the text: a reward can see what was said."""
    calls: list[ParsedToolCall] = []

    def take(block: re.Match[str]) -> str:
        call = _parse(block[1])
        if call is None:
            return block[0]
        calls.append(call)
        return ""

    rest = _CALL.sub(take, text)
    return (rest.strip(), calls) if calls else (text, [])


def _parse(block: str) -> ParsedToolCall | None:
    try:
        call = json.loads(block)
    except ValueError:
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    # Arguments that are no object are handed on as text: the harness tells the model what is wrong with them.
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ParsedToolCall(raw=block, name=call["name"], arguments=text)

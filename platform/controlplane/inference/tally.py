"""What an answer has cost so far, counted from what the engine sent. Pure; knows the shape of a chunk and nothing else.

The engine's usage is believed where it comes; an aborted stream never gets that far. Up to there the prompt's and the chunks'
token ids are counted, which the gateway asks every engine for.
"""

from dataclasses import dataclass
from typing import Any


@dataclass
class Tally:
    input_tokens_count: int = 0
    output_tokens_count: int = 0
    digest: str = ""

    def feed(self, chunk: dict[str, Any]) -> None:
        """Take one chunk of a stream, or one whole reply, into account."""
        self.digest = (chunk.get("adapter") or {}).get("digest") or chunk.get("system_fingerprint") or self.digest
        prompt = chunk.get("prompt_token_ids")
        if prompt:
            self.input_tokens_count = len(prompt)
        self.output_tokens_count += sum(len(choice.get("token_ids") or []) for choice in chunk.get("choices") or [])
        usage = chunk.get("usage")
        if usage:
            self.input_tokens_count = usage["prompt_tokens"]
            self.output_tokens_count = usage["completion_tokens"]

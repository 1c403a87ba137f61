"""What turns sequences into tokens, as the routes see it: our own engine (`engine`), or a vLLM server (`vllm.engine`).

Knows the contract alone. Whoever implements it writes into the sequence and tells its ticket; text, chat, tool calls, adapters'
names, limits of requests and errors are the same in front of every backend.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from trainer.inference.sequence import Sequence


@dataclass(eq=False)
class Ticket:
    """The reader's side of a submitted sequence."""

    sequence: Sequence
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        """There is a token, or the end."""
        self._news.set()

    async def progress(self) -> None:
        """Wait for news: a token where the sequence streams, or its end."""
        if not self.sequence.is_finished:
            await self._news.wait()
        self._news.clear()

    async def finished(self) -> Sequence:
        while not self.sequence.is_finished:
            await self.progress()
        return self.sequence


class Backend(Protocol):
    """Used from one event loop, between `start` and `stop`."""

    generated_at_s: float | None
    """When a step last gave a token or advanced a prompt, on the monotonic clock."""

    @property
    def in_flight_count(self) -> int:
        """Sequences that are being decoded."""

    async def start(self) -> None:
        """Returns once sequences can be submitted."""

    async def stop(self) -> None:
        """Whatever still runs ends with reason `engine`."""

    def submit(self, sequence: Sequence) -> Ticket:
        """Raises Saturated when too many wait, EngineStopped when nothing runs any more, BadRequest for what this backend cannot
        do."""

    def abort(self, sequence: Sequence) -> None:
        """End a sequence whose client went away. A finished one is left as it is."""

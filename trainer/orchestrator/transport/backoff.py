"""Waiting between tries of a call to a service that is away for a moment.

Knows delays and deadlines. Refuses to know what is called. Clock and sleep are injected, so that tests never wait.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class Backoff:
    """Delays grow by half from `first_s` to `most_s`, each spread by ±25 % so that callers do not march in step."""

    give_up_s: float
    first_s: float = 0.1
    most_s: float = 3.0
    clock: Clock = field(default_factory=lambda: time.monotonic)
    sleep: Sleep = asyncio.sleep
    _started_s: float | None = field(default=None, init=False)
    _delay_s: float = field(default=0.0, init=False)

    async def wait(self) -> bool:
        """Sleep before the next try. False, without sleeping, when the time to give up has come."""
        now_s = self.clock()
        if self._started_s is None:
            self._started_s, self._delay_s = now_s, self.first_s
        if now_s - self._started_s >= self.give_up_s:
            return False
        await self.sleep(self._delay_s * random.uniform(0.75, 1.25))
        self._delay_s = min(self.most_s, self._delay_s * 1.5)
        return True

    @property
    def waited_s(self) -> float:
        return 0.0 if self._started_s is None else self.clock() - self._started_s

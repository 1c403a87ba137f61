"""How any environment comes up: within a deadline, and with whatever its code raises kept as the reason.

Knows states and the deadline. Refuses to know the library. Nothing that tenant code raises while loading, SystemExit included,
gets past `load`: the environment is then broken, with the module and line that broke it.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from typing import Literal

from trainer.contracts.rollouts import RunnerConfig, TenantError
from trainer.runner.faults import from_exception

log = logging.getLogger(__name__)


class LoadedEnvironment(ABC):
    """`status` is loading, then ready or broken for good."""

    def __init__(self, config: RunnerConfig) -> None:
        self.config = config
        self.status: Literal["loading", "ready", "broken"] = "loading"
        self.error: TenantError | None = None
        self.tasks_count: int | None = None
        self.group_rewards: list[str] = []

    async def load(self, stack: AsyncExitStack) -> None:
        """What it starts lives until `stack` closes."""
        try:
            async with asyncio.timeout(self.config.limits.load_s):
                # In a thread, so that a tenant's endless import leaves the loop free to notice.
                await asyncio.to_thread(self._construct)
                await self._serve(stack)
            self.status = "ready"
        except TimeoutError:
            self._break(TenantError(type="Timeout", message=f"loading took longer than {self.config.limits.load_s:g} s"))
        except (Exception, SystemExit) as error:
            # The owner reads this in the release's or the run's log; the health check carries one line of it.
            log.error("the environment does not load", exc_info=error)
            self._break(from_exception(error))

    @abstractmethod
    def _construct(self) -> None:
        """Import, make, and read one task."""

    async def _serve(self, stack: AsyncExitStack) -> None:  # noqa: B027 (not every interface shares something)
        """Start what rollouts share, if anything."""

    def _break(self, error: TenantError) -> None:
        self.status, self.error = "broken", error

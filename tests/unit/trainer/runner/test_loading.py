"""How an environment of any interface comes up, and what must be there for it to."""

from contextlib import AsyncExitStack

import pytest

from trainer.contracts.rollouts import RunnerConfig
from trainer.runner.loading import LoadedEnvironment

CONFIG = RunnerConfig(environment="sums", renderer={}, tokenizer_path="")


class Exiting(LoadedEnvironment):
    def _construct(self) -> None:
        raise SystemExit("not on my machine")


def test_one_that_cannot_say_how_it_is_made_is_refused_before_anything_is_loaded():
    class Unmade(LoadedEnvironment):
        pass

    with pytest.raises(TypeError, match="_construct"):
        Unmade(CONFIG)


async def test_what_a_package_raises_while_loading_is_its_reason_and_ends_nothing_else():
    async with AsyncExitStack() as stack:
        environment = Exiting(CONFIG)
        await environment.load(stack)
    assert environment.status == "broken"
    assert environment.error is not None and "not on my machine" in environment.error.message

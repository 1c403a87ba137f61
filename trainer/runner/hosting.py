"""The environment that a configuration names, hosted by the code for its package's interface.

Knows that there are two, each for another version of the library; a process imports the one that it needs.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from trainer.contracts.rollouts import RunnerConfig
from trainer.runner.rollouts import HostedEnvironment


def host(config: RunnerConfig) -> HostedEnvironment:
    """Not loaded yet. Importing the library takes a second or two."""
    with _nothing_to_collect():
        return _host(config)


@contextmanager
def _nothing_to_collect() -> Iterator[None]:
    """For imports: what they make stays, and looking through five thousand modules for garbage again and again is two fifths of a
    runner's start. Afterwards the collector leaves them out for good."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _host(config: RunnerConfig) -> HostedEnvironment:
    if config.interface == "load_environment":
        # The two halves import different versions of the library, of which one is installed.
        from trainer.runner.older.environment import OlderEnvironment

        return OlderEnvironment(config)
    # As above.
    from trainer.runner import chat_harness, toolserver
    from trainer.runner.environment import Environment

    chat_harness.register()
    toolserver.install()
    return Environment(config)

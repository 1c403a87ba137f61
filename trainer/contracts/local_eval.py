"""An evaluation on somebody's own machine: what the `prime` command tells the runner there, and what comes back.

The command writes a `LocalJob` to a file, starts `python -m trainer.runner.local FILE` in an environment with the library of the
package's interface, and reads lines of `LocalProgress` from its output. Samples go to the job's file, one line each, as they
come.
"""

from typing import Annotated, Any

from pydantic import Field

from trainer.contracts.base import Wire
from trainer.contracts.interfaces import Interface
from trainer.contracts.rollouts import RolloutSampling

INFRASTRUCTURE = "infrastructure"
"""State of a sample whose model call failed: it is made again when the evaluation goes on."""


class LocalJob(Wire):
    """`num_examples` -1 takes the whole taskset. The key itself is in the variable `api_key_var`."""

    environment: str
    """Import name of the package."""
    interface: Interface = "taskset"
    args: dict[str, Any] = {}
    model: str
    base_url: str
    api_key_var: str
    num_examples: Annotated[int, Field(ge=-1)]
    rollouts_per_example: Annotated[int, Field(ge=1)]
    sampling: RolloutSampling = RolloutSampling()
    max_concurrent: Annotated[int, Field(ge=1, le=1024)] = 16
    deadline_s: Annotated[float, Field(gt=0)] = 300.0
    results: str
    """File of samples as JSON lines; those that are there are not made again."""


class LocalProgress(Wire):
    done: int
    total: int
    reward: float | None = None
    """Of the rollout that has just ended."""

"""What a package of this interface may be that no runner here can play, in words for its author.

Knows the library's kinds of environments and rubrics. Refuses to change them. A kind is told by the library's name for it, since
importing all of them would ask for packages that nobody here has.
"""

import traceback
from collections.abc import Iterator
from typing import Any

from trainer.runner.older.groups import members

_NEWER = "the Taskset interface of verifiers 0.4.0 has a way"
_BOXED = f"wants a container of its own, and a sandbox starts none; {_NEWER}"
_JUDGED = f"asks a judge over the network, and a sandbox has none; {_NEWER}: a judge is an agent"
_CONTAINERS = frozenset({"SandboxEnv", "CliAgentEnv", "BrowserEnv", "OpenEnvEnv"})
_PLACES = {
    "/envs/sandbox_env.py": f"a SandboxEnv {_BOXED}",
    "/envs/experimental/": f"an experimental environment of the library {_BOXED}",
    "/envs/integrations/browser": f"a BrowserEnv {_BOXED}",
    "/envs/integrations/openenv": f"an OpenEnvEnv {_BOXED}",
    "/rubrics/judge_rubric.py": f"a JudgeRubric {_JUDGED}",
}
"""Files of the library in which making such a thing fails here, before anybody can see what it is."""


def refusal(env: Any) -> str | None:
    """Why this environment cannot be played, or None."""
    return next((reason for member in members(env) for reason in _refusals(member)), None)


def refusal_of(error: Exception) -> str | None:
    """Why a package cannot be played that failed inside the library while it was made, or None where it is something else."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__) if "/verifiers/legacy/" in frame.filename]
    return next((reason for place, reason in _PLACES.items() if any(place in file for file in files)), None)


def leaves(rubric: Any) -> Iterator[Any]:
    """The rubrics that hold functions."""
    for part in getattr(rubric, "rubrics", None) or ():
        yield from leaves(part)
    if not getattr(rubric, "rubrics", None):
        yield rubric


def _refusals(env: Any) -> Iterator[str]:
    name = type(env).__name__
    if _CONTAINERS & _kinds(env):
        yield f"{name} {_BOXED}"
    if env.message_type != "chat":
        yield f"{name} prompts with plain text (message_type={env.message_type!r}); models are asked in chat messages alone"
    if not env.score_rollouts:
        yield f"{name} scores no rollout (score_rollouts=False)"
    if env.requires_group_rollouts:
        yield f"the rubric of {name} scores all rollouts of a task together; each is played and scored by itself here; {_NEWER}"
    if env.provides_advantages:
        yield f"the rubric of {name} computes advantages of its own; here the run's algorithm does"
    for rubric in leaves(env.rubric):
        if "JudgeRubric" in _kinds(rubric):
            yield f"{type(rubric).__name__} {_JUDGED}"


def _kinds(thing: Any) -> set[str]:
    """The library's own classes that it is made of."""
    return {kind.__name__ for kind in type(thing).__mro__ if kind.__module__.split(".")[0] == "verifiers"}

"""The library's configuration, with every default replaced that would be unlimited or point elsewhere.

Knows the names of the library's settings. Refuses to know tasks. Resolving a configuration imports tenant code.
"""

import os
from typing import Any

import verifiers.v1 as vf
from verifiers.v1.clients import ModelContext
from verifiers.v1.configs.agent import AgentConfig
from verifiers.v1.utils.loaders import default_harness_id, env_config_type

from trainer.contracts.rollouts import SEAT_HEADER, RolloutRequest, RunnerConfig, RunnerLimits, SeatModel
from trainer.runner.chat_harness import HARNESS_ID

_CONNECT_S = 5.0
_NO_HARNESS = "bash"
"""What the library names for a package that brings no harness: one that needs a container."""
_INTERCEPTED_PER_SERVER = 256


def environment_config(config: RunnerConfig) -> vf.EnvConfig:
    """The validated configuration of the tenant's environment. Raises whatever its import or its validators raise."""
    limits = config.limits
    fields = env_config_type(config.environment).model_fields
    seats = {name: field.default for name, field in fields.items() if isinstance(field.default, AgentConfig)}
    if unknown := sorted(config.seats.keys() - seats.keys()):
        raise ValueError(f"seats: there is no agent {', '.join(unknown)} here; there are {', '.join(sorted(seats))}")
    harness = harness_id(config.environment)
    raw: dict[str, Any] = {name: _seat(limits, default, harness) for name, default in seats.items()}
    for name, player in config.seats.items():
        raw[name] |= _player(name, player, config)
    raw["taskset"] = {**config.args, "id": config.environment}
    raw["timeout"] = {"episode": _episode_s(limits), "finalize": limits.scoring_s}
    raw["interception"] = {"type": "elastic", "multiplex": _INTERCEPTED_PER_SERVER}
    return vf.resolve_env_config(raw)


def harness_id(environment: str) -> str:
    """The package's own harness where it exports one, else ours."""
    found = default_harness_id(environment)
    return HARNESS_ID if found == _NO_HARNESS else found


def _seat(limits: RunnerLimits, default: AgentConfig, harness: str) -> dict[str, Any]:
    """`default` is what the environment says of the agent: it may ask for less than the run allows."""
    return {
        "runtime": {"type": "subprocess"},
        "harness": {"id": harness},
        "max_turns": min(default.max_turns or limits.max_turns, limits.max_turns),
        "max_total_tokens": min(default.max_total_tokens or limits.max_total_tokens, limits.max_total_tokens),
        "network_notice": False,
        "timeout": {
            "setup": limits.setup_s,
            "rollout": limits.rollout_s,
            "finalize": limits.scoring_s,
            "scoring": limits.scoring_s,
        },
    }


def _player(name: str, player: SeatModel, config: RunnerConfig) -> dict[str, Any]:
    """A model of its own, called as in an evaluation: nothing that it says is trained on."""
    client = _endpoint(config, config.limits.rollout_s) | {"type": "eval", "headers": {SEAT_HEADER: name}}
    sampling = {"temperature": player.temperature, "max_tokens": player.max_tokens}
    return {"model": player.model, "client": client, "sampling": sampling}


def _endpoint(config: RunnerConfig, read_s: float) -> dict[str, Any]:
    """Where nobody has set a key, a placeholder is sent: in a sandbox the socket itself is the permission."""
    os.environ.setdefault(config.api_key_var, "local")
    return {"base_url": config.base_url, "api_key_var": config.api_key_var, "timeout": {"connect": _CONNECT_S, "read": read_s}}


def _episode_s(limits: RunnerLimits) -> float:
    """Above the sum of the stages, so that the stage is named and not the episode."""
    return limits.setup_s + limits.rollout_s + 2 * limits.scoring_s + 10.0


def model_context(request: RolloutRequest, config: RunnerConfig) -> ModelContext:
    """Policy, client and sampling of one rollout."""
    common = _endpoint(config, request.deadline_s)
    if request.client == "eval":
        client = vf.EvalClientConfig(**common)
    else:
        client = vf.TrainClientConfig(**common, renderer=config.renderer, renderer_model_name=config.tokenizer_path)
    return ModelContext(request.policy, client, vf.SamplingConfig(**request.sampling.model_dump()))

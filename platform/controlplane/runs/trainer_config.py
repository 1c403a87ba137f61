"""Reads the whole-trainer TOML that newer public clients send (`POST /training/runs`) as a run of ours.

Such a file configures a trainer, an orchestrator and an engine of its own. Where it asks for LoRA we place it on the shared
ones: what a run of ours has a field for is taken over, what only concerns machines is left out with a notice, and the rest is
refused by name. Pure; defaults and limits stay with `RunConfig`.
"""

from collections.abc import Mapping
from typing import Any

from controlplane.core.errors import FieldProblem, Invalid

RENAMED = {
    "max_steps": "max_steps",
    "seed": "seed",
    "model.name": "model.name",
    "trainer.model.lora.rank": "lora_rank",
    "trainer.model.lora.alpha": "lora_alpha",
    "trainer.optim.lr": "learning_rate",
    "trainer.optim.weight_decay": "optimizer.weight_decay",
    "trainer.optim.max_norm": "optimizer.max_grad_norm",
    "orchestrator.batch_size": "batch_size",
    "orchestrator.group_size": "rollouts_per_example",
    "orchestrator.rollouts_per_example": "rollouts_per_example",
    "orchestrator.max_off_policy_steps": "max_off_policy_steps",
    "orchestrator.sampling.max_tokens": "max_tokens",
    "orchestrator.sampling.max_completion_tokens": "max_tokens",
    "orchestrator.sampling.temperature": "temperature",
    "orchestrator.train.sampling.max_tokens": "max_tokens",
    "orchestrator.train.sampling.max_completion_tokens": "max_tokens",
    "orchestrator.train.sampling.temperature": "temperature",
    "ckpt.interval": "checkpoints.interval",
}
ENVIRONMENTS = ("orchestrator.train.env", "orchestrator.train.source", "orchestrator.env")
ENVIRONMENT_FIELDS = frozenset({"id", "name", "args", "ratio", "group_size", "max_turns", "timeout", "version"})
MACHINERY = ("inference", "deployment", "slurm", "wandb", "output_dir", "log", "weight_broadcast", "clean_output_dir")
"""Tables about machines that this installation runs itself."""
Leaves = dict[str, Any]


def translate(config: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The body of a run request, and what was left out. Raises Invalid (422) naming every field that has no meaning here."""
    if not isinstance(_at(config, "trainer.model.lora"), Mapping):
        raise Invalid(
            ("body", "config", "trainer", "model", "lora"),
            "full fine-tuning is not served by this installation",
            hint="Add [trainer.model.lora]: adapters are trained on the shared trainer.",
        )
    leaves = _leaves(config)
    leaves.pop("name", None)
    body: dict[str, Any] = {}
    for path, field in RENAMED.items():
        if path in leaves:
            _put(body, field, leaves.pop(path))
    body["environments"] = _environments(leaves)
    left_out = sorted({path.split(".")[0] for path in leaves} & set(MACHINERY))
    _refuse([path for path, value in leaves.items() if path.split(".")[0] not in MACHINERY and value != {}])
    return body, [f"[{name}] was left out: this installation runs that itself" for name in left_out]


def _environments(leaves: Leaves) -> list[dict[str, Any]]:
    entries = [entry for path in ENVIRONMENTS for entry in _as_list(leaves.pop(path, None))]
    found = [_environment(entry, index) for index, entry in enumerate(entries)]
    if not found:
        raise Invalid(("body", "config", *ENVIRONMENTS[0].split(".")), "name at least one environment")
    return found


def _environment(entry: Any, index: int) -> dict[str, Any]:
    """One table, whose package is named by `id` or, deeper, by `env.taskset.id`."""
    given = dict(entry) if isinstance(entry, Mapping) else {}
    inner = given.pop("env", None)
    if isinstance(inner, Mapping):
        given = {"id": _at(inner, "taskset.id")} | given
    _refuse([f"{ENVIRONMENTS[0]}.{index}.{name}" for name in sorted(set(given) - ENVIRONMENT_FIELDS)])
    return {name: value for name, value in given.items() if value is not None}


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Leaves:
    """Dotted path → value. An empty table is a leaf: it says nothing."""
    found: Leaves = {}
    for name, value in table.items():
        path = f"{prefix}{name}"
        found |= _leaves(value, f"{path}.") if isinstance(value, Mapping) and value else {path: value}
    return found


def _at(table: Mapping[str, Any], path: str) -> Any:
    node: Any = table
    for name in path.split("."):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def _put(body: dict[str, Any], path: str, value: Any) -> None:
    *tables, last = path.split(".")
    for name in tables:
        body = body.setdefault(name, {})
    body[last] = value


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _refuse(paths: list[str]) -> None:
    if not paths:
        return
    refused = Invalid(("body", "config"), "The configuration is not valid.")
    refused.problems = [
        FieldProblem(("body", "config", *path.split(".")), "has no meaning on a shared trainer") for path in paths
    ]
    raise refused

"""What is shown for each algorithm: its configuration, the tiny model's task, and what counts as better.

Knows settings alone; they travel into docs/figures/learning.json as they stand here.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from trainer.contracts.run_config import AlgorithmConfig
from trainer.contracts.samples import LossKind

Objective = Literal["reward", "agreement", "likelihood"]
GAIN_MIN, SEEDS, GOOD_SEEDS_MIN = 0.2, 5, 4
HINT = "sum! "


@dataclass(frozen=True)
class Plan:
    """`objectives`: the reward of a rollout; agreement, log p_ref − log π of a reply that the policy sampled, whose mean is minus
    the reverse KL, in nats per reply; likelihood, the log-probability of what `ce` learns in a rollout or row, in nats."""

    name: str
    algorithm: str
    objectives: tuple[Objective, ...]
    options: dict[str, Any] = field(default_factory=dict)
    loss: LossKind = "dppo"
    learning_rate: float = 5e-3
    steps: int = 10
    groups: int = 4
    group_size: int = 8
    turns: int = 1
    lag: int = 0
    """How many versions old a batch is when it is learnt. The kinds of `rl` differ on batches that are not the newest alone."""
    beginning: str | None = None
    """Who the policy is at first, of `policies.POLICIES`; None is the base model."""
    teacher: str | None = None
    dataset: str | None = None
    """A file of examples/datasets."""

    def config(self) -> AlgorithmConfig:
        return AlgorithmConfig.model_validate({"id": self.algorithm, "options": self.options})


PLANS = (
    Plan("grpo", "grpo", ("reward",), steps=24, lag=1, learning_rate=2e-3),
    Plan("grpo-length", "grpo", ("reward",), options={"length_penalty": 0.1}),
    Plan("ppo_clip", "grpo", ("reward",), loss="ppo_clip", steps=24, lag=1, learning_rate=2e-3),
    Plan("ipo", "grpo", ("reward",), loss="ipo", steps=24, lag=1, learning_rate=2e-3),
    Plan("reinforce", "grpo", ("reward",), loss="reinforce", steps=24, lag=1, learning_rate=2e-3),
    Plan("max_rl", "max_rl", ("reward",)),
    Plan("rae", "rae", ("reward",)),
    Plan("echo", "echo", ("reward", "likelihood"), options={"alpha": 0.003}, groups=3, turns=2),
    Plan("opd", "opd", ("agreement", "reward"), teacher="adder", groups=8, group_size=4, learning_rate=3e-3),
    Plan("opsd", "opsd", ("agreement", "reward"), options={"hint": HINT}, beginning="obedient", learning_rate=1e-3),
    Plan("sft-teacher", "sft", ("likelihood",), teacher="adder", groups=8, group_size=4, learning_rate=3e-3),
    Plan("sft-dataset", "sft", ("likelihood",), dataset="sums.jsonl"),
)

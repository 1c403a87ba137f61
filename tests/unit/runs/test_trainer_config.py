"""How a whole-trainer configuration is read as a run of ours."""

import pytest

from controlplane.core.errors import Invalid
from controlplane.runs.trainer_config import translate

LORA = {"model": {"lora": {"rank": 4, "alpha": 8}}, "optim": {"lr": 1e-3, "weight_decay": 0.1}}
ENVIRONMENT = {"train": {"env": [{"id": "ann/rules", "ratio": 2}]}}


def test_known_fields_are_renamed_into_place():
    config = {"model": {"name": "tiny"}, "trainer": LORA, "orchestrator": ENVIRONMENT | {"batch_size": 64, "group_size": 8}}
    body, notices = translate(config)
    assert body == {
        "model": {"name": "tiny"},
        "lora_rank": 4,
        "lora_alpha": 8,
        "learning_rate": 1e-3,
        "optimizer": {"weight_decay": 0.1},
        "batch_size": 64,
        "rollouts_per_example": 8,
        "environments": [{"id": "ann/rules", "ratio": 2}],
    }
    assert notices == []


def test_an_environment_may_be_named_by_its_taskset():
    source = {"train": {"source": [{"name": "rules", "env": {"taskset": {"id": "ann/rules"}}}]}}
    assert translate({"trainer": LORA, "orchestrator": source})[0]["environments"] == [{"id": "ann/rules", "name": "rules"}]


def test_machinery_is_left_out_with_a_notice():
    _, notices = translate(
        {"trainer": LORA, "orchestrator": ENVIRONMENT, "inference": {"vllm": {"port": 1}}, "wandb": {"project": "x"}}
    )
    assert [notice.split()[0] for notice in notices] == ["[inference]", "[wandb]"]


@pytest.mark.parametrize(
    ("config", "loc"),
    [
        ({"orchestrator": ENVIRONMENT}, ("body", "config", "trainer", "model", "lora")),
        ({"trainer": LORA}, ("body", "config", "orchestrator", "train", "env")),
        ({"trainer": LORA | {"tp": 2}, "orchestrator": ENVIRONMENT}, ("body", "config", "trainer", "tp")),
    ],
)
def test_what_has_no_meaning_here_is_named(config, loc):
    with pytest.raises(Invalid) as caught:
        translate(config)
    assert [problem.loc for problem in caught.value.problems] == [loc]

"""A configuration written as TOML means the same run, whatever its owner put into it."""

import tomllib

import pytest

from trainer.contracts.run_config import RunConfig
from trainer.contracts.toml_config import translate
from trainer.contracts.toml_writing import changed_paths, write_toml

PLAIN = {"model": {"name": "tiny"}, "environments": [{"id": "ann/rules"}]}
ODD = {
    "name": 'it\'s "quoted" \\ and\nbroken \x7f é',
    "model": {"name": "tiny"},
    "environments": [
        {
            "id": "ann/rules",
            "args": {"a b": [1, 2.5, "x"], "deep": {"on": True, "none": {}}},
            "ratio": 0.25,
            "teacher": {"checkpoint_id": "x"},
        },
        {"id": "ann/tools", "version": "0.1.0", "max_turns": 3},
    ],
    "learning_rate": 1e-5,
    "max_tokens": 48,
    "temperature": 0.5,
    "optimizer": {"betas": [0.8, 0.9], "schedule": "cosine"},
    "algorithm": {"loss": "ppo_clip", "options": {"scale": 2.0}},
    "teacher": {"model": {"name": "math@200"}, "sampling": {"temperature": 0.7}},
    "eval": {"environments": [{"id": "ann/rules", "num_examples": 5}], "interval": 7},
    "adapters": {"interval": 10},
}


@pytest.mark.parametrize("body", [PLAIN, ODD], ids=["plain", "odd"])
def test_what_is_written_is_read_as_the_same_configuration(body):
    config = RunConfig.model_validate(body)
    assert RunConfig.model_validate(translate(tomllib.loads(write_toml(config))).body) == config


def test_only_what_somebody_chose_is_written_and_named():
    config = RunConfig.model_validate(PLAIN | {"learning_rate": 1e-3, "batch_size": 128})
    assert changed_paths(config) == ["environments.0.id", "learning_rate", "model.name"]
    assert "batch_size" not in write_toml(config)

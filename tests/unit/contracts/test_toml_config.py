"""The TOML of `prime train` means the request body that the wire contract's table says."""

import tomllib

import pytest

from trainer.contracts.run_config import RunConfig
from trainer.contracts.toml_config import (
    EVAL_LEGACY_NOTICE,
    LEGACY_NOTICES,
    OverrideError,
    apply_override,
    drop_legacy,
    parse_overrides,
    parse_value,
    translate,
)

FULL = """
name = "digits"
model = "tiny"
loss = "rl"
max_steps = 40
batch_size = 64
rollouts_per_example = 8
learning_rate = 2e-3
env_file = "secrets.env"

[sampling]
max_tokens = 16
temperature = 0.9

[[env]]
id = "ada/digit-sum@0.2.0"
args = { low = 1 }
ratio = 2.0

[[env]]
taskset = { id = "ada/digit-max" }

[eval]
interval = 5
num_examples = 16
[[eval.env]]
id = "ada/digit-sum"

[checkpoints]
interval = 10
keep_cloud = 2

[adapters]
interval = 20
keep_last = 3
"""


def body_of(text: str) -> dict:
    return translate(tomllib.loads(text)).body


def test_a_teacher_is_named_by_its_model_alone():
    text = """
model = "tiny"
loss = "sft"
[teacher]
model = "math@200"
[teacher.sampling]
temperature = 0.7
[[env]]
id = "ada/digit-sum"
teacher = { model = "tiny" }
"""
    body = body_of(text)
    assert body["teacher"] == {"model": {"name": "math@200"}, "sampling": {"temperature": 0.7}}
    assert (body["environments"][0]["teacher"], body["loss"]) == ({"model": {"name": "tiny"}}, "sft")


def test_a_full_file_becomes_the_request_of_the_wire():
    made = translate(tomllib.loads(FULL))
    assert made.body == {
        "name": "digits",
        "model": {"name": "tiny"},
        "max_steps": 40,
        "batch_size": 64,
        "rollouts_per_example": 8,
        "learning_rate": 2e-3,
        "max_tokens": 16,
        "temperature": 0.9,
        "environments": [
            {"id": "ada/digit-sum", "version": "0.2.0", "args": {"low": 1}, "ratio": 2.0},
            {"id": "ada/digit-max"},
        ],
        "eval": {"interval": 5, "num_examples": 16, "environments": [{"id": "ada/digit-sum"}]},
        "checkpoints": {"interval": 10, "keep_cloud": 2},
        "adapters": {"interval": 20, "keep_last": 3},
    }
    assert made.env_files == ["secrets.env"]
    assert made.notices == []


def test_an_environment_may_choose_its_own_algorithm():
    text = 'model = "tiny"\n[[env]]\nid = "a/b"\n[env.algorithm]\nid = "echo"\noptions = { alpha = 0.5 }\n[[env]]\nid = "a/c"\n'
    config = RunConfig.model_validate(translate(tomllib.loads(text)).body)
    chosen, default = (config.algorithm_of(ref) for ref in config.environments)
    assert (chosen.id, chosen.options, default.id) == ("echo", {"alpha": 0.5}, "grpo")


def test_what_is_translated_is_a_valid_run():
    assert RunConfig.model_validate(body_of(FULL)).environments[0].version == "0.2.0"


def test_an_unknown_key_travels_on_for_the_server_to_name():
    body = body_of('model = "tiny"\nmax_stepz = 3\n[[env]]\nid = "a/b"\ncolour = "red"')
    assert body["max_stepz"] == 3
    assert body["environments"] == [{"id": "a/b", "colour": "red"}]


def test_what_else_a_taskset_sets_stays_visible():
    assert body_of('[[env]]\ntaskset = { id = "a/b@1.0", split = "x" }')["environments"] == [
        {"id": "a/b", "version": "1.0", "taskset": {"split": "x"}}
    ]


@pytest.mark.parametrize("key", sorted(LEGACY_NOTICES))
def test_a_legacy_key_is_dropped_with_a_notice(key):
    made = translate({"model": "tiny", key: 4})
    assert key not in made.body
    assert made.notices == [LEGACY_NOTICES[key]]


def test_the_old_lag_bound_keeps_its_value_unless_the_new_one_is_given():
    assert drop_legacy({"max_async_level": 3})[0] == {"max_off_policy_steps": 3}
    assert drop_legacy({"max_async_level": 3, "max_off_policy_steps": 5})[0] == {"max_off_policy_steps": 5}


def test_an_eval_table_without_environments_is_left_out():
    made = translate(tomllib.loads("[eval]\ninterval = 5\neval_base_model = true"))
    assert "eval" not in made.body
    assert made.notices == [EVAL_LEGACY_NOTICE]


def test_tables_that_the_request_spells_otherwise():
    body = body_of('loss = "sft"\n[infrastructure]\ncompute_size = "M"\n[wandb]\nproject = "p"')
    assert body == {"loss": "sft", "compute_size": "M", "monitoring": {"wandb": {"project": "p"}}}


@pytest.mark.parametrize(
    ("words", "pairs"),
    [
        (["--max-steps", "5"], [("max_steps", "5")]),
        (["--eval.interval=3"], [("eval.interval", "3")]),
        (["--flag", "--other", "1"], [("flag", "true"), ("other", "1")]),
        (["--lr", "-1"], [("lr", "-1")]),
        (["--last"], [("last", "true")]),
        ([], []),
    ],
)
def test_overrides_are_read_from_the_command_line(words, pairs):
    assert parse_overrides(words) == pairs


def test_a_value_without_a_key_is_refused():
    with pytest.raises(OverrideError, match="stray"):
        parse_overrides(["stray"])


def test_an_override_reaches_tables_and_lists():
    config = tomllib.loads(FULL)
    assert apply_override(config, "env.0.args.low", "3") == 3
    apply_override(config, "optimizer.weight_decay", "1e-2")
    apply_override(config, "sampling.temperature", "0.5")
    assert config["env"][0]["args"]["low"] == 3
    assert config["optimizer"] == {"weight_decay": 0.01}
    assert translate(config).body["temperature"] == 0.5


@pytest.mark.parametrize("key", ["model.name", "env.7.id", "env.x.id", "max_steps.a.b", "a..b", "", ".".join("a" * 17)])
def test_an_override_that_leads_nowhere_is_refused(key):
    with pytest.raises(OverrideError):
        apply_override(tomllib.loads(FULL), key, "1")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ('"5"', "5"),
        ("tiny", "tiny"),
        ("nan", "nan"),
        ("2026-01-01", "2026-01-01"),
    ],
)
def test_values_are_toml_where_json_has_them_and_text_otherwise(text, value):
    assert parse_value(text) == value


def test_an_agents_model_is_named_by_its_name_alone():
    body = translate(tomllib.loads('[[env]]\nid = "me/calls"\n[env.seats.user]\nmodel = "tiny"\ntemperature = 0.5')).body
    assert body["environments"] == [{"id": "me/calls", "seats": {"user": {"model": {"name": "tiny"}, "temperature": 0.5}}}]

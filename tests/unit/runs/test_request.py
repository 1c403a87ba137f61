"""What a run request may say, and how its refusal names the field."""

import pytest

from controlplane.core.errors import Invalid
from controlplane.runs.request import parse_request

BODY = {"model": {"name": "tiny"}, "environments": [{"id": "ann/rules"}]}


def refused(**fields):
    with pytest.raises(Invalid) as caught:
        parse_request(BODY | fields)
    return [problem.loc for problem in caught.value.problems]


def test_defaults_are_filled_in():
    config = parse_request(BODY).config
    assert (config.max_steps, config.batch_size, config.rollouts_per_example) == (100, 128, 8)


def test_unknown_and_out_of_range_fields_are_named():
    assert refused(learningrate=1) == [("body", "learningrate")]
    assert refused(max_steps=0) == [("body", "max_steps")]
    assert refused(algorithm={"id": "no-such"}) == [("body", "algorithm", "id")]
    assert refused(environments=[{"id": "a/b", "ratio": -1}]) == [("body", "environments", 0, "ratio")]


@pytest.mark.parametrize("body", [[], "text", None, 3])
def test_a_body_that_is_no_object_is_refused(body):
    with pytest.raises(Invalid, match="JSON object"):
        parse_request(body)


def test_a_bad_secret_is_named_and_its_value_is_not_told():
    with pytest.raises(Invalid) as caught:
        parse_request(BODY | {"secrets": [{"key": "lower", "value": "hunter2hunter2"}]})
    assert caught.value.problems[0].loc == ("body", "secrets", 0, "key")
    assert "hunter2" not in str(caught.value.problems)


def test_legacy_keys_are_accepted_with_a_notice():
    request = parse_request(BODY | {"buffer": {}, "trajectory_strategy": "x", "max_async_level": 2})
    assert request.config.max_off_policy_steps == 2
    assert len(request.notices) == 3


def test_empty_fields_of_things_not_served_are_dropped_and_set_ones_refused():
    parse_request(BODY | {"post_batch_filters": [], "pre_batch_filters": [], "teacher": None, "loss": "rl"})
    assert refused(post_batch_filters=[{"type": "repetition"}]) == [("body", "post_batch_filters")]
    assert refused(loss="dpo") == [("body", "loss")]


def test_the_public_clients_filters_are_taken_with_their_thresholds():
    filters = [{"type": "repetition", "enforce": True, "window": 64}, {"type": "zero_advantage"}]
    taken = parse_request(BODY | {"pre_batch_filters": filters}).config.pre_batch_filters
    assert [(one.type, one.enforce) for one in taken] == [("repetition", True), ("zero_advantage", True)]
    assert refused(pre_batch_filters=[{"type": "repetition", "windows": 3}])[0][:3] == ("body", "pre_batch_filters", 0)
    assert refused(pre_batch_filters=[{"type": "boredom"}])[0][:3] == ("body", "pre_batch_filters", 0)


def test_the_public_clients_loss_chooses_the_algorithm():
    teacher = {"model": {"name": "math@200"}, "client": {}}
    config = parse_request(BODY | {"loss": "sft", "teacher": teacher, "algorithm": {"options": {"min_reward": 1.0}}}).config
    assert (config.algorithm.id, config.algorithm.options) == ("sft", {"min_reward": 1.0})
    assert config.teacher.model.name == "math@200"
    assert parse_request(BODY | {"loss": "rl", "algorithm": {"id": "opsd"}}).config.algorithm.id == "opsd"
    assert refused(loss="sft", algorithm={"id": "grpo"}) == [("body", "loss")]


def test_a_teacher_elsewhere_or_without_a_name_is_refused():
    away = {"model": {"name": "big"}, "client": {"base_url": "https://elsewhere"}}
    assert refused(loss="sft", teacher=away) == [("body", "teacher", "client")]
    assert refused(teacher={"sampling": {}, "model": None}) == [("body", "teacher")]
    assert refused(teacher={"model": {"name": "a"}, "checkpoint_id": "b"}) == [("body", "teacher")]


def test_the_team_travels_beside_the_configuration():
    assert parse_request(BODY | {"team_id": "c" * 25}).config.max_steps == 100


@pytest.mark.parametrize(("table", "query", "forced"), [({}, False, False), ({"force": True}, False, True), ({}, True, True)])
def test_a_red_badge_can_be_forced_by_the_free_table_or_the_query(table, query, forced):
    assert parse_request(BODY | {"run_config": table}, force=query).is_forced is forced


@pytest.mark.parametrize("name", ["PATH", "HOME", "LD_PRELOAD", "PYTHONPATH"])
def test_a_secret_that_would_steer_the_interpreter_is_refused(name):
    with pytest.raises(Invalid) as caught:
        parse_request(BODY | {"secrets": [{"key": name, "value": "/somewhere"}]})
    assert caught.value.problems[0].loc == ("body", "secrets", 0, "key")


def test_secrets_stay_out_of_the_representation():
    request = parse_request(BODY | {"secrets": [{"key": "API_KEY", "value": "hunter2hunter2"}]})
    assert request.secrets == {"API_KEY": "hunter2hunter2"}
    assert "hunter2" not in repr(request)

"""`[buffer]` of older clients: what has a counterpart is taken over, what has none is named."""

import pytest

from trainer.contracts.run_config import RunConfig
from trainer.contracts.toml_config import drop_legacy, translate

BODY = {"model": {"name": "tiny"}, "environments": [{"id": "a/b"}, {"id": "a/c", "ratio": 5.0}]}


def test_thresholds_become_a_curriculum_that_never_comes_back_to_a_task():
    body, (notice,) = drop_legacy(BODY | {"buffer": {"easy_threshold": 0.9, "seed": 4}})
    config = RunConfig.model_validate(body)
    assert [ref.curriculum.model_dump() for ref in config.environments] == [
        {"groups": 1, "easy_threshold": 0.9, "hard_threshold": -2e6, "revisit": 0.0, "weight": "uniform"}
    ] * 2
    assert "easy_threshold was taken over" in notice and "seed was ignored" in notice


def test_an_environment_with_a_curriculum_of_its_own_keeps_it():
    body, _ = drop_legacy(
        BODY | {"environments": [{"id": "a/b", "curriculum": {"groups": 3}}], "buffer": {"hard_threshold": 0.1}}
    )
    assert RunConfig.model_validate(body).environments[0].curriculum.groups == 3


def test_a_replay_has_no_curriculum():
    entry = {"id": "a/b", "replay": {"run_id": "c" * 25}}
    body, _ = drop_legacy(BODY | {"environments": [entry], "buffer": {"hard_threshold": 0.1}})
    assert body["environments"] == [entry]


@pytest.mark.parametrize("given", [None, [], [{"type": "zero_advantage", "enforce": False}], [{"type": "gibberish"}]])
def test_online_filtering_becomes_one_filter_of_groups_that_teach_nothing(given):
    body, (notice,) = drop_legacy(BODY | {"buffer": {"online_difficulty_filtering": True}, "pre_batch_filters": given})
    zero = [one for one in body["pre_batch_filters"] if one["type"] == "zero_advantage"]
    assert zero == ([given[0]] if given and given[0]["type"] == "zero_advantage" else [{"type": "zero_advantage"}])
    assert "ignored" not in notice


def test_ratios_are_those_of_the_environments_unless_one_has_its_own():
    body, _ = drop_legacy(BODY | {"buffer": {"env_ratios": [0.25, 0.75]}})
    assert [entry["ratio"] for entry in body["environments"]] == [0.25, 5.0]
    body, (notice,) = drop_legacy(BODY | {"buffer": {"env_ratios": [1.0]}})
    assert "env_ratios was ignored" in notice and "ratio" not in body["environments"][0]


@pytest.mark.parametrize("buffer", [4, None, {}, {"hash_keys": ["task"]}, {"online_difficulty_filtering": False}])
def test_what_has_no_counterpart_is_named_and_left_out(buffer):
    made = translate({"model": "tiny", "buffer": buffer})
    assert "buffer" not in made.body and "ignored" in made.notices[0]


def test_a_threshold_that_makes_no_sense_is_refused_by_field():
    body, _ = drop_legacy(BODY | {"buffer": {"easy_threshold": 0.1, "hard_threshold": 0.9}})
    with pytest.raises(ValueError, match=r"environments\.0\.curriculum\.hard_threshold"):
        RunConfig.model_validate(body)

"""Teachers and generators that contradict the algorithm are found in the configuration alone, each by its field."""

import pytest

from trainer.contracts.run_config import RunConfig
from trainer.contracts.teaching import generator_of, sampling_of, teaching_problems

TEACHER = {"model": {"name": "math@200"}}
REPLAY = {"run_id": "c" * 25}


def config(algorithm="grpo", *environments, **fields) -> RunConfig:
    entries = [{"id": "ann/rules"} | entry for entry in environments or ({},)]
    return RunConfig.model_validate({"model": {"name": "tiny"}, "environments": entries, "algorithm": {"id": algorithm}} | fields)


@pytest.mark.parametrize(
    ("asked", "loc", "text"),
    [
        (config("opd"), ("teacher",), "other than the policy itself"),
        (config("sft"), ("teacher",), "needs a teacher"),
        (config("opd", {"teacher": TEACHER}, {}), ("teacher",), "environments.1"),
        (config("grpo", teacher=TEACHER), ("teacher",), "choose opd or sft"),
        (config("opsd", {"teacher": TEACHER}), ("environments", 0, "teacher"), "no teacher"),
        (config("grpo", {"generator": "teacher"}), ("environments", 0, "generator"), "frozen generator"),
        (config("opd", {}, {"generator": "teacher"}, teacher=TEACHER), ("environments", 1, "generator"), "frozen generator"),
        (config("sft", {"generator": "policy"}, teacher=TEACHER), ("environments", 0, "generator"), "others"),
    ],
)
def test_a_contradiction_is_named(asked, loc, text):
    (problem,) = teaching_problems(asked)
    assert problem.loc == loc and text in problem.message


@pytest.mark.parametrize("field", [{"teacher": TEACHER}, {"generator": "policy"}, {"replay": REPLAY}])
def test_an_evaluation_neither_teaches_nor_replays(field):
    (name,) = field
    (problem,) = teaching_problems(config("grpo", eval={"environments": [{"id": "ann/rules"} | field]}))
    assert problem.loc == ("eval", "environments", 0, name)


def test_a_record_is_replayed_one_by_one_and_asks_nobody():
    replayed = config("sft", {"replay": REPLAY, "group_size": 4}, {}, teacher=TEACHER)
    assert teaching_problems(replayed) == []
    assert [generator_of(replayed, ref) for ref in replayed.environments] == ["record", "teacher"]
    assert [replayed.group_size_of(ref) for ref in replayed.environments] == [1, 8]


@pytest.mark.parametrize(
    "asked",
    [
        config("grpo"),
        config("sft", {"replay": REPLAY}),
        config("grpo", {"generator": "policy"}),
        config("opd", teacher=TEACHER),
        config("opd", {"teacher": TEACHER}, {"teacher": {"checkpoint_id": "x"}}),
        config("opsd"),
        config("sft", {"generator": "teacher"}, teacher=TEACHER),
    ],
)
def test_what_fits_together_passes(asked):
    assert teaching_problems(asked) == []


def test_the_generator_samples_as_its_own_table_says_and_else_as_the_run():
    own = config("sft", {}, {"teacher": TEACHER}, teacher=TEACHER | {"sampling": {"temperature": 0.5}}, max_tokens=64)
    assert [generator_of(own, ref) for ref in own.environments] == ["teacher", "teacher"]
    sampled = [sampling_of(own, ref) for ref in own.environments]
    assert [(one.temperature, one.max_tokens) for one in sampled] == [(0.5, 64), (1.0, 64)]
    pupil = config("opd", teacher=TEACHER | {"sampling": {"temperature": 0.5}})
    assert sampling_of(pupil, pupil.environments[0]).temperature == 1.0, "the pupil samples at the run's own temperature"

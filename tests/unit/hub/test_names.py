"""Which names an environment may have."""

import pytest

from controlplane.hub.names import (
    module_name,
    module_refusal,
    normalize,
    one_edit_apart,
    owners_look_alike,
    refusal,
    skeleton,
)


@pytest.mark.parametrize("name", ["digit-sum", "Digit_Sum", "a", "a1", "x" * 100])
def test_ordinary_names_are_free(name):
    assert refusal(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "not a project name"),
        ("-a", "not a project name"),
        ("a/b", "not a project name"),
        ("..", "not a project name"),
        ("x" * 101, "not a project name"),
        ("Prime", "Rootstock's own"),
        ("rootstock_lab", "Rootstock's own"),
        ("json", "standard library"),
        ("Http.Client", None),
        ("concurrent", "standard library"),
        ("verifiers", "layered on"),
        ("mini_swe_agent", "built into"),
        ("user-sim", "built into"),
        ("wheels", "hub's own addresses"),
    ],
)
def test_a_taken_name_says_whose_it_is(name, reason):
    found = refusal(name)
    assert found is None if reason is None else reason in found


def test_one_project_has_one_spelling():
    assert normalize("Digit__Sum.x") == normalize("digit-sum-x") == "digit-sum-x"
    assert module_name("Digit-Sum") == "digit_sum"


def test_a_wheel_may_not_shadow_what_environments_rely_on():
    assert module_refusal("json") and module_refusal("verifiers") and module_refusal("trainer")
    assert module_refusal("digit_sum") is None


@pytest.mark.parametrize(
    "name", ["js0n", "data-classes", "verlfiers", "verifers", "verifeirs", "renderer", "harbour", "r00tstock"]
)
def test_a_name_that_people_take_for_a_known_one_is_refused(name):
    assert "too close" in refusal(name)


@pytest.mark.parametrize("name", ["primes", "decisions", "trainers", "numbers-game", "json-repair", "wordle", "gsm8k", "tool"])
def test_an_honest_neighbour_of_a_short_or_ordinary_word_is_free(name):
    assert refusal(name) is None


def test_look_alikes_have_one_skeleton():
    assert skeleton("Digit-Sum") == skeleton("d1git_surn") == skeleton("dlgitsum")
    assert skeleton("level-2") != skeleton("level-3")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("verifiers", "verifiers", True),
        ("verifiers", "verifers", True),
        ("verifiers", "veriffiers", True),
        ("verifiers", "verifiars", True),
        ("verifiers", "vreifiers", True),
        ("verifiers", "verifires", True),
        ("verifiers", "vreifeirs", False),
        ("verifiers", "verify", False),
        ("ab", "cd", False),
    ],
)
def test_one_edit_is_one_slip_of_the_fingers(one, other, expected):
    assert one_edit_apart(one, other) is expected
    assert one_edit_apart(other, one) is expected


def test_owners_are_alike_by_look_or_by_a_slip_and_told_apart_by_figures():
    assert owners_look_alike("ada-lab", "ada-1ab")
    assert owners_look_alike("graphite", "graphlte")
    assert owners_look_alike("graphite", "grahpite")
    assert not owners_look_alike("lab-1", "lab-2")
    assert not owners_look_alike("ada", "eda")

"""Which names an environment may have."""

import pytest

from controlplane.hub.names import module_name, module_refusal, normalize, refusal


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

"""How much a reply is worth that is nearly right."""

import pytest

from tests.factories.example_modules import plain_module

likeness = plain_module("reverse_text", "likeness").likeness


@pytest.mark.parametrize(
    ("said", "wanted", "worth"),
    [
        ("abc", "abc", 1.0),
        ("a", "abc", 0.5),
        ("", "abc", 0.0),
        ("xyz", "abc", 0.0),
        ("cba", "abc", 1 / 3),
        ("abcabc", "abc", 2 / 3),
    ],
)
def test_each_character_in_its_order_counts(said, wanted, worth):
    assert likeness(said, wanted) == pytest.approx(worth)

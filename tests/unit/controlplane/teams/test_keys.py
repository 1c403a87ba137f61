"""The grammar of an API key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.teams.keys import generate_key, parse_key


def test_what_is_generated_is_parsed_and_matches_its_hash():
    key = generate_key()
    parsed = parse_key(key.text)
    assert parsed is not None and parsed.prefix == key.prefix and parsed.matches(key.sha256)
    assert not parsed.matches(generate_key().sha256)


def test_keys_are_different_and_keep_silent():
    keys = {generate_key().text for _ in range(200)}
    assert len(keys) == 200
    key = generate_key()
    assert key.text not in repr(key)


@pytest.mark.parametrize("position", [4, 20, -1])
def test_a_mistyped_key_is_refused_by_its_checksum(position: int):
    text = list(generate_key().text)
    text[position] = "a" if text[position] != "a" else "b"
    assert parse_key("".join(text)) is None


@given(st.text(max_size=80))
def test_anything_else_is_no_key(text: str):
    assert parse_key(text) is None

"""Text that cannot be stored: a client is told where it is, a leased process's is replaced."""

import io
import json

import pytest
from rest_framework.exceptions import ParseError

from controlplane.core.errors import Invalid
from controlplane.core.text import DEPTH_MAX, ClientJSONParser, ProcessJSONParser


def sent(text: str) -> io.BytesIO:
    return io.BytesIO(text.encode())


def nested(depth: int) -> str:
    return '{"a":' + "[" * depth + "]" * depth + "}"


def test_ordinary_text_passes_as_it_is():
    body = {"name": "naïve 🌱", "list": [1, 2.5, None, True, "x"]}
    assert ClientJSONParser().parse(sent(json.dumps(body))) == body


@pytest.mark.parametrize("bad", ["\0", "\ud800"])
def test_a_client_is_told_which_field_cannot_be_stored(bad):
    for body, loc in (({"env": [{"args": {"x": f"a{bad}"}}]}, ("body", "env", 0, "args", "x")), ({"a": {bad: 1}}, ("body", "a"))):
        with pytest.raises(Invalid) as refused:
            ClientJSONParser().parse(sent(json.dumps(body)))
        assert refused.value.problems[0].loc == loc


@pytest.mark.parametrize("bad", ["\0", "\ud800"])
def test_what_a_process_passes_on_is_replaced(bad):
    body = ProcessJSONParser().parse(sent(json.dumps({"rollouts": [{"preview": f"a{bad}b"}]})))
    assert body["rollouts"][0]["preview"] in {"a\N{REPLACEMENT CHARACTER}b", "a?b"}


@pytest.mark.parametrize("parser", [ClientJSONParser(), ProcessJSONParser()])
def test_nesting_has_an_end(parser):
    parser.parse(sent(nested(DEPTH_MAX - 1)))
    with pytest.raises(Invalid, match="deeper"):
        parser.parse(sent(nested(DEPTH_MAX + 1)))
    with pytest.raises(ParseError, match="deep"):
        parser.parse(sent(nested(100_000)))

"""A value is masked in every spelling that R15 names, also inside something longer, and nothing else is."""

import base64
import json
import random
import re
from urllib.parse import quote, quote_plus

import pytest

from tests.fixtures.gates import Gate
from trainer.contracts.redaction import MASK, Redactor

VALUE = 'sk/live+Zm9v "é" &=%~key'
LETTERS = "".join(map(chr, range(33, 127)))
KEY_FILE = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n"
SPELLINGS = {
    "raw": lambda value: value,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "base64 without padding": lambda value: base64.b64encode(value.encode()).decode().rstrip("="),
    "base64 in lines": lambda value: base64.encodebytes(value.encode()).decode(),
    "hex": lambda value: value.encode().hex(),
    "HEX": lambda value: value.encode().hex().upper(),
    "URL-quoted": quote,
    "URL-quoted whole": lambda value: quote(value, safe=""),
    "URL-quoted in lower case": lambda value: re.sub("%..", lambda quoted: quoted[0].lower(), quote(value, safe="")),
    "URL-quoted as a form": quote_plus,
    "URL-quoted byte by byte": lambda value: "".join(f"%{byte:02x}" for byte in value.encode()),
    "JSON": json.dumps,
    "JSON in UTF-8": lambda value: json.dumps(value, ensure_ascii=False),
    "Python": repr,
}


@pytest.mark.gate("R15")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_masked(spelling: str, gate: Gate):
    """R15: drawn values of every length from 8 on, in the middle of other text: no half of one is left."""
    draw, left = random.Random(gate.seed), []
    values = [
        VALUE,
        *("".join(draw.choices(LETTERS, k=length)) for length in range(8, gate.pick(small=40, large=400))),
    ]
    for value in values:
        spelled = SPELLINGS[spelling](value)
        shown = Redactor([value]).text(f"before {spelled} after")
        if any(spelled[start : start + 8] in shown for start in range(len(spelled) - 7)):
            left.append((value, shown))
    gate.record(trials=len(values), violations=len(left))
    assert left == []


@pytest.mark.gate("R15")
@pytest.mark.parametrize("before", ["", "u", "us", "user:", "a-longer-user:"])
@pytest.mark.parametrize("after", ["", "x", "@h", "@host"])
def test_a_value_inside_something_that_was_encoded_whole_is_masked(before: str, after: str):
    """Basic authentication encodes name and password together: what remains tells less than three characters at each end."""
    for value in ("a-password-1", "a-password-12", "a-password-123"):
        shown = Redactor([value]).text(base64.b64encode(f"{before}{value}{after}".encode()).decode())
        head, _, tail = shown.partition(MASK)
        known = base64.b64decode(head + "A" * (-len(head) % 4)) + base64.b64decode(
            "A" * (-len(tail.rstrip("=")) % 4) + tail.rstrip("=")
        )
        assert MASK in shown and value[3:-3].encode() not in known


def test_lines_of_a_long_value_are_masked_each():
    lines = Redactor([KEY_FILE]).text("read MIIEvQIBADANBgkqhkiG9w0B and AQEFAASCBKcwggSjAgEAAoIB")
    assert lines == f"read {MASK} and {MASK}"


def test_what_was_learnt_once_stays_masked_and_the_longest_goes_first():
    redactor = Redactor(["an-old-secret"])
    redactor.learn(["an-old-secret-with-more"])
    assert redactor.text("an-old-secret-with-more, an-old-secret") == f"{MASK}, {MASK}"


def test_short_values_and_other_text_stay():
    redactor = Redactor(["short", ""])
    document = {"a": ["short", 1, None]}
    assert redactor.is_idle and redactor.document(document) is document
    assert Redactor(["long-enough"]).document({"long": "enough"}) == {"long": "enough"}


def test_a_document_is_masked_in_names_and_depths_and_keeps_its_shape():
    masked = Redactor(["long-enough"]).document({"x long-enough": [{"y": "long-enough"}, 1.5, None, True]})
    assert masked == {f"x {MASK}": [{"y": MASK}, 1.5, None, True]}

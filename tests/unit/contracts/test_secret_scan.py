"""Keys that were left in a source are found by file and line, and nothing else is."""

import pytest

from trainer.contracts.secret_scan import DISTINCT_MIN, LINE_MAX_BYTES, SPELLINGS, Finding, scan

BODY = "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5dE7f"
# Put together here, so that no scanner takes this file for a leak.
KEYS = {
    "an API key of Rootstock": "rsk" + "_abc123def456_" + BODY,
    "an access key of AWS": "AKI" + "AQ3EGRD5TBNZ7WXYA",
    "a token of GitHub": "gh" + "p_" + BODY[:36],
    "a token of GitLab": "glp" + "at-" + BODY[:20],
    "a token of Hugging Face": "h" + "f_" + BODY[:34],
    "an API key of Anthropic": "sk-" + "ant-" + BODY,
    "an API key of OpenAI": "sk-" + "proj-" + BODY,
    "an API key of OpenRouter": "sk-" + "or-v1-" + "0123456789abcdef" * 4,
    "a secret key of Stripe": "sk" + "_live_" + BODY[:24],
    "an API key of Google": "AI" + "za" + BODY[:35],
    "a token of Slack": "xo" + "xb-" + BODY[:24],
    "a token of npm": "np" + "m_" + BODY[:36],
    "a token of PyPI": "pypi-" + "AgEIcHlwaS5vcmc" + BODY + BODY,
    "a private key": "-----BEGIN " + "RSA PRIVATE KEY-----",
}


def test_every_spelling_has_its_example():
    assert set(KEYS) == {spelling.kind for spelling in SPELLINGS}


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_is_found_with_its_line_and_never_shown(kind):
    (found,) = scan([f"a = 1\n\nKEY = '{KEYS[kind]}'\n".encode()])
    assert found == Finding(3, kind)
    assert KEYS[kind] not in str(found)


@pytest.mark.parametrize("size_bytes", [1, 7, 64])
def test_chunks_may_cut_a_key_anywhere(size_bytes):
    text = ("x = 1\n" * 30 + f"k = '{KEYS['a token of GitHub']}'\ny = 2\n").encode()
    assert scan(text[at : at + size_bytes] for at in range(0, len(text), size_bytes)) == [Finding(31, "a token of GitHub")]


def test_a_key_in_one_endless_line_is_found_once():
    key = KEYS["a token of GitHub"].encode()
    text = b" " * (2 * LINE_MAX_BYTES - 10) + key + b" " * LINE_MAX_BYTES
    chunks = [text[at : at + 4096] for at in range(0, len(text), 4096)]
    assert scan(chunks) == [Finding(1, "a token of GitHub")]


def test_a_marked_line_passes_and_the_next_one_does_not():
    key = KEYS["an access key of AWS"]
    text = f"a = '{key}'  # rootstock: not-a-secret\nb = '{key}'\n"
    assert scan([text.encode()]) == [Finding(2, "an access key of AWS")]


@pytest.mark.parametrize(
    "text",
    [
        "gh" + "p_" + "x" * 36,
        "AKI" + "AIOSFODNN7EXAMPLE",
        "task" + "-" + BODY + BODY,
        "rsk_" + BODY,
        "sk-short",
        "-----BEGIN CERTIFICATE-----",
        "my" + "gh" + "p_" + BODY[:36],
    ],
)
def test_what_only_resembles_a_key_is_none(text):
    assert scan([text.encode()]) == []
    assert DISTINCT_MIN > 2


def test_binary_data_are_passed_over():
    assert scan([b"\0" + KEYS["a token of GitHub"].encode()]) == []

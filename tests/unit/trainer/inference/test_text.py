"""Rendering, and text that grows: pieces add up to the whole, whatever the cut."""

import json

import pytest

from tests.factories.tiny_llama import TURN_END, TURN_START
from trainer.inference.errors import BadRequest
from trainer.inference.text import TextCodec, TextStream


@pytest.fixture(scope="module")
def codec(model):
    return TextCodec(model)


def stream(codec, text, *, chunk=1, **options):
    """(pieces, stream) of a text that comes `chunk` bytes at a time."""
    growing, ids = TextStream(codec, **options), list(text.encode())
    pieces = [growing.feed(ids[start : start + chunk]) for start in range(0, len(ids), chunk)]
    return [*pieces, growing.finish()], growing


def test_a_dialogue_is_rendered_by_the_template(codec):
    ids = codec.render_chat([{"role": "user", "content": "3+4?"}], None)
    assert ids == [TURN_START, *b"user\n3+4?", TURN_END, 10, TURN_START, *b"assistant\n"]
    assert codec.eos_id == TURN_END


def test_tools_and_calls_reach_the_template(codec):
    tools = [{"type": "function", "function": {"name": "add", "parameters": {}}}]
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": {"a": 3}}}
    ids = codec.render_chat([{"role": "assistant", "content": "", "tool_calls": [call]}], tools)
    text = codec.tokenizer.decode(ids, skip_special_tokens=False)
    assert "tools: add" in text
    assert '<tool_call>{"name":"add","arguments":{"a":3}}</tool_call>' in text


def test_a_template_that_refuses_is_the_callers_error(tmp_path, model):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((model / name).read_bytes())
    (tmp_path / "chat_template.jinja").write_text("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(BadRequest, match="roles must alternate"):
        TextCodec(tmp_path).render_chat([{"role": "user", "content": "x"}], None)


def test_a_template_cannot_reach_out_of_its_sandbox(tmp_path, model):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((model / name).read_bytes())
    (tmp_path / "chat_template.jinja").write_text("{{ messages.__class__.__mro__[1].__subclasses__() }}")
    with pytest.raises(BadRequest):
        TextCodec(tmp_path).render_chat([{"role": "user", "content": "x"}], None)


def test_special_tokens_may_be_objects_in_the_configuration(tmp_path, model):
    config = json.loads((model / "tokenizer_config.json").read_text()) | {"eos_token": {"content": "<|im_end|>"}}
    (tmp_path / "tokenizer.json").write_bytes((model / "tokenizer.json").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert TextCodec(tmp_path).eos_id == TURN_END


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
@pytest.mark.parametrize("text", ["plain", "naïve – ☃ 🌱", "", "🌱"])
def test_pieces_add_up_and_hold_no_half_characters(codec, text, chunk):
    pieces, _ = stream(codec, text, chunk=chunk)
    assert "".join(pieces) == text
    assert all("\ufffd" not in piece for piece in pieces)


def test_broken_bytes_are_shown_at_the_end(codec):
    growing = TextStream(codec)
    assert growing.feed([0xF0, 0x9F]) == ""
    assert growing.finish() == "\ufffd"


def test_special_tokens_are_skipped_unless_wanted(codec):
    ids = [*b"hi", TURN_END]
    skipped, kept = TextStream(codec), TextStream(codec, skip_special_tokens=False)
    assert skipped.feed(ids) + skipped.finish() == "hi"
    assert kept.feed(ids) + kept.finish() == "hi<|im_end|>"


@pytest.mark.parametrize("chunk", [1, 2, 5, 100])
@pytest.mark.parametrize(
    ("text", "stops", "shown"),
    [
        ("one STOP two", ("STOP",), "one "),
        ("one ST two", ("STOP",), "one ST two"),
        ("one ST", ("STOP",), "one ST"),
        ("abcab", ("zz", "cab"), "ab"),
        ("aXbY", ("Y", "X"), "a"),
        ("STOP", ("STOP",), ""),
        ("aaab", ("aab",), "a"),
    ],
)
def test_nothing_of_a_stop_string_is_ever_shown(codec, text, stops, shown, chunk):
    pieces, growing = stream(codec, text, chunk=chunk, stop_strings=stops)
    assert "".join(pieces) == shown
    assert growing.stopped == (shown != text)

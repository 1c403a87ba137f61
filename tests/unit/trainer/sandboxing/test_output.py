"""What is kept of a box's output."""

from hypothesis import given
from hypothesis import strategies as st

from trainer.sandboxing.output import LogBuffer


def test_short_output_is_kept_whole():
    log = LogBuffer(100)
    log.write(b"one\n")
    log.write(b"two\n")
    assert log.text() == "one\ntwo\n"
    assert not log.is_over_limit


def test_long_output_keeps_both_ends_and_says_what_is_missing():
    log = LogBuffer(20)
    log.write(b"begin-----" + b"x" * 1000 + b"-------end")
    assert log.text() == "begin-----\n[... 1000 bytes left out ...]\n-------end"
    assert log.is_over_limit


def test_bytes_that_are_no_text_are_shown_as_such():
    log = LogBuffer(100)
    log.write(b"\xff\xfeok")
    assert log.text() == "��ok"


@given(st.lists(st.binary(max_size=50), max_size=50), st.integers(2, 200))
def test_any_chunking_gives_the_same_text_and_never_more_than_the_limit(chunks, limit):
    pieces, whole = LogBuffer(limit), LogBuffer(limit)
    for chunk in chunks:
        pieces.write(chunk)
    whole.write(b"".join(chunks))
    assert pieces.text() == whole.text()
    assert len(pieces.text().split("\n[...")[0]) <= limit

"""Promise: what a stream has cost is known after every chunk, and the engine's own usage is believed where it comes."""

from controlplane.inference.tally import Tally

OPENING = {
    "choices": [{"delta": {"role": "assistant", "content": ""}}],
    "prompt_token_ids": [1, 2, 3],
    "adapter": {"digest": "d1"},
}


def token(*ids: int) -> dict:
    return {"choices": [{"delta": {"content": "x"}, "token_ids": list(ids)}]}


def fed(*chunks: dict) -> Tally:
    tally = Tally()
    for chunk in chunks:
        tally.feed(chunk)
    return tally


def test_an_aborted_stream_has_its_prompt_and_its_tokens():
    tally = fed(OPENING, token(5), token(6, 7))
    assert (tally.input_tokens_count, tally.output_tokens_count) == (3, 3)


def test_a_chunk_without_text_still_has_tokens():
    assert fed(OPENING, {"choices": [{"delta": {}, "token_ids": [9]}]}).output_tokens_count == 1


def test_the_engines_usage_wins():
    usage = {"prompt_tokens": 4, "completion_tokens": 9}
    tally = fed(OPENING, token(5), {"choices": [], "usage": usage})
    assert (tally.input_tokens_count, tally.output_tokens_count) == (4, 9)


def test_a_stream_that_never_began_cost_nothing():
    assert fed() == Tally(0, 0, "")


def test_the_digest_is_the_newest_that_was_said():
    assert fed(OPENING, {"choices": [], "system_fingerprint": "d2"}, token(1)).digest == "d2"

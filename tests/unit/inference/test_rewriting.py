"""Promise: the caller sees public names and OpenAI's shape, and none of the gateway's bookkeeping."""

from controlplane.inference.rewriting import public_chunk, public_reply

NAMES = {"request_id": "c1", "public_name": "tiny:ca"}
CHUNK = {
    "id": "engine-7",
    "model": "crun.v3",
    "adapter": {"name": "crun.v3", "digest": "d"},
    "prompt_token_ids": [1],
    "choices": [{"index": 0, "delta": {"content": "x"}, "token_ids": [5]}],
}
USAGE = {"id": "engine-7", "model": "crun.v3", "choices": [], "usage": {"prompt_tokens": 1}}


def test_names_are_public_and_the_identity_passes():
    reply = public_reply(CHUNK, **NAMES)
    assert (reply["id"], reply["model"], reply["adapter"]["digest"]) == ("chatcmpl-c1", "tiny:ca", "d")


def test_bookkeeping_is_taken_out():
    reply = public_reply(CHUNK, **NAMES)
    assert "prompt_token_ids" not in reply and reply["choices"] == [{"index": 0, "delta": {"content": "x"}}]


def test_the_usage_chunk_is_shown_to_whoever_asked_for_it():
    assert public_chunk(USAGE, **NAMES, wants_usage=False) is None
    assert public_chunk(USAGE, **NAMES, wants_usage=True)["usage"] == {"prompt_tokens": 1}


def test_usage_on_the_last_choice_is_shown_to_whoever_asked_for_it():
    last = CHUNK | {"usage": {"prompt_tokens": 1}}
    assert "usage" not in public_chunk(last, **NAMES, wants_usage=False)
    assert "usage" in public_chunk(last, **NAMES, wants_usage=True)

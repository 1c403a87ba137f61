"""What the caller sees of an engine's answer: public names, our request id, none of the gateway's own bookkeeping. Pure."""

from typing import Any

BOOKKEEPING = ("prompt_token_ids", "prompt_logprobs", "kv_transfer_params")
CHOICE_BOOKKEEPING = ("token_ids", "stop_reason")


def public_reply(reply: dict[str, Any], *, request_id: str, public_name: str) -> dict[str, Any]:
    """A whole reply or one chunk. `adapter` and `system_fingerprint` pass: they say which weights answered."""
    body = {name: value for name, value in reply.items() if name not in BOOKKEEPING}
    body["choices"] = [_public_choice(choice) for choice in reply.get("choices") or []]
    return body | {"id": f"chatcmpl-{request_id}", "model": public_name}


def public_chunk(chunk: dict[str, Any], *, request_id: str, public_name: str, wants_usage: bool) -> dict[str, Any] | None:
    """A chunk as the caller asked for it; None for the chunk that carries only the usage, where nobody asked for that.

    Code that reads `chunk.choices[0]` must not meet a chunk without choices unless it asked for one.
    """
    body = public_reply(chunk, request_id=request_id, public_name=public_name)
    if wants_usage:
        return body
    body.pop("usage", None)
    return body if body["choices"] else None


def _public_choice(choice: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in choice.items() if name not in CHOICE_BOOKKEEPING}

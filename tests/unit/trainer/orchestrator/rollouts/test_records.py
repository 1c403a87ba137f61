"""The body of a step: everything that the token view shows, readable without the model."""

import base64
import json

import zstandard

from tests.factories.rollouts import make_call, make_group, make_outcome
from trainer.contracts.catalogue import load_catalogue, model_folder
from trainer.orchestrator.proxy.token_texts import TokenTexts
from trainer.orchestrator.rollouts.records import rollout_batch, rollout_usage
from trainer.orchestrator.rollouts.rollout import Accounted


def record(*calls, trained: bool = True, texts: TokenTexts | None = None) -> dict:
    (rollout,) = make_group(3, 1).rollouts
    rollout.started_s, rollout.ended_s = 10.0, 12.0
    rollout.outcome = make_outcome(calls=calls)
    batch = rollout_batch([Accounted(rollout, "ok", trained, 0, billed=True)], step=4, texts=texts)
    (line,) = zstandard.decompress(base64.b64decode(batch.body_zstd_b64)).splitlines()
    return json.loads(line)


def test_calls_say_where_their_tokens_are_in_the_streams_that_were_trained_on():
    first = make_call((1, 2), (3, 4), started_s=10.5, ended_s=11.0)
    (trace,) = record(first, make_call((1, 2, 3, 4, 9), (5,)), make_call((8, 8), (7,)))["traces"]
    assert [(call["branch"], call["start"]) for call in trace["calls"]] == [(0, 0), (0, 4), (1, 0)]
    assert trace["branches"] == [
        {"tokens_count": 6, "sampled_count": 3, "trained": True},
        {"tokens_count": 3, "sampled_count": 1, "trained": True},
    ]
    assert (trace["calls"][0]["offset_s"], trace["calls"][0]["duration_s"]) == (0.5, 0.5)


def test_a_rollout_that_was_not_trained_on_has_no_trained_stream():
    (trace,) = record(make_call(), trained=False)["traces"]
    assert [branch["trained"] for branch in trace["branches"]] == [False]


def test_every_token_id_has_its_text_markers_and_broken_characters_included():
    texts = TokenTexts(model_folder(load_catalogue()["tiny"].tokenizer))
    found = record(make_call((257, 10, 51), (0xC3, 258)), texts=texts)["texts"]
    assert {key: found[key] for key in ("257", "10", "51", "258")} == {
        "257": "<|im_start|>",
        "10": "\n",
        "51": "3",
        "258": "<|im_end|>",
    }
    assert found["195"] and "\N{REPLACEMENT CHARACTER}" not in found["195"]


def test_a_model_without_a_tokenizer_file_has_ids_alone(tmp_path):
    assert record(make_call(), texts=TokenTexts(tmp_path))["texts"] == {}


def test_tokens_of_an_agent_that_another_model_plays_are_metered_apart():
    user = make_call((), (), route="chat", seat="user", input_tokens=9, output_tokens=4)
    (rollout,) = make_group(3, 1).rollouts
    rollout.outcome = make_outcome(calls=[make_call(input_tokens=7, output_tokens=2), user])
    item = Accounted(rollout, "ok", True, 0, billed=True)
    found = {(event.meter.value, event.sequence): event.quantity for event in rollout_usage([item], sequence="3")}
    assert found == {
        ("rollout_input_tokens", "3"): 7,
        ("rollout_output_tokens", "3"): 2,
        ("rollout_input_tokens", "3.seat.user"): 9,
        ("rollout_output_tokens", "3.seat.user"): 4,
    }

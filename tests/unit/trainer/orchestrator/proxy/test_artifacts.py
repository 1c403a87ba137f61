"""What rollouts carry by digest: kept once, checked, limited, and never in the orchestrator's memory."""

import base64
import hashlib
import json
import os
import tracemalloc

import pytest

from tests.factories.rollouts import make_call, make_group, make_outcome, teach
from trainer.contracts.generation import ContentPart, RoutedExperts
from trainer.orchestrator.proxy.artifacts import ArtifactDamaged, ArtifactTooLarge, RolloutArtifacts
from trainer.orchestrator.proxy.call_artifacts import keep_pictures, keep_routing, split_data_url
from trainer.orchestrator.rollouts.branches import merge_calls
from trainer.orchestrator.rollouts.records import rollout_batch
from trainer.orchestrator.rollouts.rollout import Accounted
from trainer.orchestrator.steps.batches import cut_batch

RUN_ID = "c" + "0" * 24
PICTURE = bytes(range(256)) * 64


def data_url(content: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(content).decode()


def routing(content: bytes, tokens: int) -> RoutedExperts:
    return RoutedExperts(data=base64.b64encode(content).decode(), shape=[tokens, 2, 2])


def test_equal_content_is_one_file_under_its_digest(tmp_path):
    artifacts = RolloutArtifacts(tmp_path)
    first, second = artifacts.keep([b"ab", b"c"]), artifacts.keep([b"abc"])
    assert first == second and first.digest == hashlib.sha256(b"abc").hexdigest()
    assert [path.name for path in tmp_path.iterdir()] == [first.digest]
    assert artifacts.read(first) == b"abc"


def test_content_beyond_the_limit_leaves_nothing(tmp_path):
    with pytest.raises(ArtifactTooLarge, match="4 bytes are more than 3"):
        RolloutArtifacts(tmp_path, bytes_max=3).keep([b"ab", b"cd"])
    assert not list(tmp_path.iterdir())


def test_a_file_that_was_changed_is_not_read_as_its_digest(tmp_path):
    artifacts = RolloutArtifacts(tmp_path)
    ref = artifacts.keep([b"abc"])
    (tmp_path / ref.digest).write_bytes(b"abd")
    with pytest.raises(ArtifactDamaged):
        artifacts.read(ref)


def test_pictures_are_listed_in_the_prompts_order_and_routing_says_its_shape(tmp_path):
    artifacts = RolloutArtifacts(tmp_path)
    parts = [ContentPart(type="image_url", url=data_url(content)) for content in (b"x", b"y", b"x")]
    listed = json.loads(artifacts.read(keep_pictures(parts, artifacts)))
    assert [entry["digest"] for entry in listed] == [hashlib.sha256(content).hexdigest() for content in (b"x", b"y", b"x")]
    assert {entry["media_type"] for entry in listed} == {"image/png"}
    head, _, body = artifacts.read(keep_routing(routing(b"\x01\x02\x03\x04", 1), artifacts)).partition(b"\n")
    assert (json.loads(head)["shape"], body) == ([1, 2, 2], b"\x01\x02\x03\x04")


@pytest.mark.parametrize("url", ["http://somewhere/x.png", "data:image/png,plain", "data:image/png;base64,@@@"])
def test_an_address_that_is_no_picture_is_refused(url):
    with pytest.raises(ValueError):
        split_data_url(url)


def test_a_stream_has_the_artifacts_of_its_last_call(tmp_path):
    artifacts = RolloutArtifacts(tmp_path)
    refs = [artifacts.keep([name]) for name in (b"first", b"second", b"fork")]
    calls = [make_call((1,), (2,), routed_experts=refs[0]), make_call((1, 2, 3), (4,), routed_experts=refs[1])]
    merged = merge_calls([*calls, make_call((1,), (9,), routed_experts=refs[2])])
    assert [branch.routed_experts for branch in merged.branches] == refs[1:]


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_ten_thousand_rollouts_with_pictures_and_routing_leave_memory_and_handles_flat(tmp_path):
    artifacts = RolloutArtifacts(tmp_path)
    parts = [ContentPart(type="image_url", url=data_url(PICTURE))]
    tracemalloc.start()
    try:
        peaks, handles = [], []
        for step in range(1, 41):
            tracemalloc.reset_peak()
            one_step(step, 250, parts, artifacts)
            peaks.append(tracemalloc.get_traced_memory()[1])
            handles.append(len(os.listdir("/proc/self/fd")))
    finally:
        tracemalloc.stop()
    assert max(peaks[20:]) < 1.2 * max(peaks[2:20])
    assert len(set(handles)) == 1
    # One picture, its list, and a routing each for what 1,000 rollouts have in common.
    assert len(list(tmp_path.iterdir())) == 2 + 1_000


def one_step(step: int, rollouts: int, parts: list[ContentPart], artifacts: RolloutArtifacts) -> None:
    group = make_group(step, rollouts)
    for number, rollout in enumerate(group.rollouts):
        taken = routing(((step % 4) * rollouts + number).to_bytes(4, "big") * 64, 64)
        refs = {"multimodal": keep_pictures(parts, artifacts), "routed_experts": keep_routing(taken, artifacts)}
        rollout.outcome = make_outcome(float(number % 2), calls=[make_call((1, 2, 3), (4, 5), **refs)])
        rollout.ended_s = 1.0
    cut = cut_batch(RUN_ID, step, [teach(group, [1.0] * rollouts)])
    assert all(sample.multimodal and sample.routed_experts for sample in cut.batch.samples)
    batch = rollout_batch([Accounted(rollout, "ok", True, 0, billed=True) for rollout in group.rollouts], step=step)
    assert len(cut.batch.model_dump_json()) + len(batch.body_zstd_b64) < rollouts * len(PICTURE)

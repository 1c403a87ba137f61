"""Admission: in order, within lanes, KV blocks and slots; nobody starves and nothing leaks."""

import time

from tests.factories.engines import make_core, make_sequence
from trainer.inference.sequence import FinishReason, SequenceState


def admit(core, *sequences):
    for sequence in sequences:
        core.scheduler.add(sequence)
    core.scheduler.admit()
    return [sequence.state is SequenceState.RUNNING for sequence in sequences]


def test_lanes_bound_the_batch_and_the_rest_waits_in_order(model):
    core = make_core(model, sequences_max=2)
    sequences = [make_sequence() for _ in range(4)]
    assert admit(core, *sequences) == [True, True, False, False]
    core.finish(sequences[0], FinishReason.ABORT)
    core.scheduler.admit()
    assert [s.state for s in sequences[2:]] == [SequenceState.RUNNING, SequenceState.WAITING]


def test_kv_is_reserved_for_the_longest_possible_answer(model):
    core = make_core(model)
    sequence = make_sequence([1] * 20, max_new=30)
    free = core.cache.free_count
    admit(core, sequence)
    assert free - core.cache.free_count == 4  # 50 tokens in blocks of 16


def test_a_large_request_is_not_passed_for_kv(model):
    core = make_core(model, kv_cache_bytes=17 * 16 * 256)  # one full context and a bit
    running, large, small = make_sequence([1] * 100), make_sequence([1] * 240), make_sequence([1])
    assert admit(core, running, large, small) == [True, False, False]
    core.finish(running, FinishReason.ABORT)
    core.scheduler.admit()
    assert large.state is SequenceState.RUNNING


def test_a_request_without_a_slot_is_passed_until_its_patience_ends(model, adapters):
    core = make_core(model, adapter_slots=1, patience_s=60)
    holder, blocked, base = make_sequence(adapter=adapters[0]), make_sequence(adapter=adapters[1]), make_sequence()
    assert admit(core, holder, blocked, base) == [True, False, True]
    blocked.submitted_at_s = time.monotonic() - 61
    passer = make_sequence(adapter=adapters[0])
    assert admit(core, passer) == [False]
    core.finish(holder, FinishReason.ABORT)
    core.scheduler.admit()
    assert blocked.state is SequenceState.RUNNING


def test_passed_requests_keep_their_order(model, adapters):
    core = make_core(model, adapter_slots=1)
    waiting = [make_sequence(adapter=adapters[1]), make_sequence(adapter=adapters[3])]
    admit(core, make_sequence(adapter=adapters[0]), *waiting, make_sequence())
    assert list(core.scheduler.waiting) == waiting


def test_rank_classes_have_slots_of_their_own(model, adapters):
    core = make_core(model, adapter_slots=1)
    assert admit(core, make_sequence(adapter=adapters[0]), make_sequence(adapter=adapters[2])) == [True, True]


def test_an_urgent_request_goes_first(model):
    core = make_core(model, sequences_max=1)
    admit(core, make_sequence())
    probe = make_sequence(urgent=True)
    core.scheduler.add(make_sequence())
    core.scheduler.add(probe)
    assert core.scheduler.waiting[0] is probe


def test_rows_are_sorted_by_adapter_and_prompts_share_the_budget(model, adapters):
    core = make_core(model, step_tokens_max=16)
    decoding = make_sequence([1, 2], adapters[1], max_new=9)
    core.scheduler.add(decoding)
    core.step()
    first, second = make_sequence([1] * 12, adapters[0]), make_sequence([1] * 12)
    admit(core, first, second)
    lanes, new = core.scheduler.plan()
    assert dict(zip(lanes.tolist(), new.tolist(), strict=True)) == {decoding.lane: 1, first.lane: 12, second.lane: 3}
    keys = core.lanes.adapter_key[lanes].tolist()
    assert keys == sorted(keys)
    assert keys[0] == 0


def test_expiry_finds_running_and_waiting_requests(model):
    core = make_core(model, sequences_max=1)
    late = [make_sequence(deadline_at_s=5.0), make_sequence(deadline_at_s=5.0)]
    admit(core, late[0], late[1], make_sequence(deadline_at_s=50.0))
    assert core.scheduler.expired(10.0) == late

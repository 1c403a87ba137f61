"""Which samples go into the next pack: within the budget, fair in tokens, sorted by run."""

from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.contracts.adapters import LoraSpec
from trainer.contracts.training import LossSpec
from trainer.core.steps import StepJob, next_pack
from trainer.core.streams import Denominators


def job(run: str, lengths: list[int]) -> StepJob:
    tenant = SimpleNamespace(
        run_id=run, adapter=SimpleNamespace(drop_gradient=lambda: None, spec=LoraSpec()), spec=SimpleNamespace(loss=LossSpec())
    )
    samples = tuple(SimpleNamespace(length=length) for length in lengths)
    return StepJob(tenant, SimpleNamespace(step=1), SimpleNamespace(samples=samples, denominators=Denominators(0, 1, 0)))


def lengths(pack):
    return {j.tenant.run_id: [s.length for s in part.samples] for j, part in zip(pack.jobs, pack.parts, strict=True)}


def test_two_runs_share_a_pack_evenly_in_tokens():
    a, b = job("a", [10] * 8), job("b", [20] * 8)
    pack = next_pack([a, b], 80)
    assert lengths(pack) == {"a": [10] * 4, "b": [20] * 2}
    assert (a.packs_shared, b.packs_shared) == (1, 1) and pack.run_ids == ("a", "b")


def test_a_run_that_comes_late_catches_up_first():
    a, b = job("a", [10] * 8), job("b", [10] * 3)
    next_pack([a], 40)
    assert lengths(next_pack([a, b], 40)) == {"a": [10], "b": [10] * 3}


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.integers(1, 90), min_size=40, max_size=40), min_size=2, max_size=5),
    st.integers(20, 200),
    st.integers(1, 12),
)
def test_runs_with_work_left_stay_within_a_turn_and_a_sample_of_each_other(samples, budget, packs):
    """Deficit round-robin, whatever the lengths of their samples: in tokens, not in samples or packs."""
    jobs = [job(str(index), own) for index, own in enumerate(samples)]
    for _ in range(packs):
        pack = next_pack(jobs, budget)
        sizes = [sample.length for part in pack.parts for sample in part.samples]
        assert sum(sizes) <= budget or len(sizes) == 1
        if any(one.done for one in jobs):
            return
        taken = [one.tokens_taken for one in jobs]
        assert max(taken) - min(taken) <= budget // 2 + 90


def test_a_sample_longer_than_the_budget_goes_alone():
    a = job("a", [500, 10])
    assert lengths(next_pack([a], 100)) == {"a": [500]}
    assert lengths(next_pack([a], 100)) == {"a": [10]}
    assert a.done and a.packs == 2 and a.packs_shared == 0


def test_packs_take_every_sample_once():
    a, b = job("a", list(range(1, 30))), job("b", [7] * 11)
    seen = {"a": [], "b": []}
    while waiting := [j for j in (a, b) if not j.done]:
        for run, part in lengths(next_pack(waiting, 50)).items():
            seen[run] += part
    assert seen == {"a": list(range(1, 30)), "b": [7] * 11}


def test_a_restarted_job_starts_over_and_counts_anew():
    a = job("a", [10] * 4)
    next_pack([a, job("b", [10])], 20)
    a.restart()
    assert (a.taken, a.packs, a.packs_shared) == (0, 0, 0) and not a.done

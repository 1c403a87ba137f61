"""Every algorithm improves its own objective: five seeds of it learn side by side in one trainer (ALGORITHMS, invariant 11). And
both ways to an adapter that knows two tasks lead somewhere, at equal tokens.
"""

from statistics import fmean

import pytest
import torch

from tests.numerics.curves.experts import TASKS, Sizes, contest
from tests.numerics.curves.learning import learn
from tests.numerics.curves.plans import GAIN_MIN, GOOD_SEEDS_MIN, PLANS, Plan
from trainer.algorithms import ALGORITHMS
from trainer.core.losses import RL_LOSSES

pytestmark = pytest.mark.timeout(600)
QUICK = {"max_rl", "rae", "opd", "opsd", "sft-teacher"}
"""Signals whose way to the adapter no other quick test takes."""


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_every_algorithm_and_every_loss_has_a_plan():
    assert {plan.algorithm for plan in PLANS} == set(ALGORITHMS)
    assert {plan.loss for plan in PLANS} == set(RL_LOSSES)


@pytest.mark.parametrize("plan", [plan for plan in PLANS if plan.name in QUICK], ids=lambda plan: plan.name)
async def test_one_seed_improves_its_own_objective(plan: Plan):
    for objective, shown in (await learn(plan, seeds=1)).items():
        assert shown.gains[0] >= GAIN_MIN, (objective, shown)


@pytest.mark.heavy
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
async def test_an_algorithm_improves_its_own_objective(plan: Plan):
    for objective, shown in (await learn(plan)).items():
        print(plan.name, objective, [f"{gain:.2f}" for gain in shown.gains])
        assert sum(gain >= GAIN_MIN for gain in shown.gains) >= GOOD_SEEDS_MIN, (objective, shown.before, shown.after)


@pytest.mark.heavy
async def test_experts_distilled_and_a_joint_run_are_compared_at_equal_tokens():
    results = await contest(Sizes())
    for one in results:
        both = (one.experts_tokens + one.distillation_tokens).trained
        assert both == pytest.approx(one.joint_tokens.trained, rel=0.02)
        assert one.distillation_tokens.trained == pytest.approx(one.joint_early_tokens.trained, rel=0.02)
        assert one.distillation_tokens.read_by_teachers == one.distillation_tokens.trained
        assert not one.joint_tokens.read_by_teachers
    ways = ("base", "distilled", "joint")
    base, distilled, joint = (fmean(getattr(one, way)[task.name] for one in results for task in TASKS) for way in ways)
    assert distilled > base and joint > base, results

"""Stop and go on: a run that was stopped anywhere equals the run that was not, bit for bit."""

import shutil
from itertools import pairwise

import pytest
import torch

from tests.numerics.recorded import new_pool, recorded, run_id, spec, step_together
from trainer.contracts.adapters import MANIFEST_NAME, WEIGHTS_NAME, adapter_path, batch_log_path, checkpoint_path
from trainer.contracts.training import OptimizerSpec
from trainer.core.errors import NotServable, StepOutOfOrder
from trainer.core.versions import RESULT_NAME

RUN = run_id("resume")
COSINE = spec(optimizer=OptimizerSpec(learning_rate=3e-3, warmup_steps=3, schedule="cosine", total_steps=12))
BATCHES = recorded(RUN, 12, seed=11, count=4)


def state(pool, run: str = RUN) -> torch.Tensor:
    tenant = pool.tenant(run)
    generator = tenant.generator.get_state().to(torch.float32)
    return torch.cat([tenant.adapter.params_P.detach(), tenant.optimizer.first_P, tenant.optimizer.second_P, generator])


def trained(root, steps: int, checkpoints=()):
    pool = new_pool(root)
    pool.open(RUN, COSINE)
    for one in BATCHES[:steps]:
        step_together(pool, [one])
        if one.step in checkpoints:
            pool.checkpoint(RUN)
    return pool


@pytest.mark.parametrize("checkpoints", [(), (3,), (2, 10), (9, 10)])
@pytest.mark.parametrize("stop", [1, 10])
def test_a_stopped_run_equals_the_uninterrupted_one(tmp_path, stop, checkpoints):
    trained(tmp_path, stop, checkpoints)
    pool = new_pool(tmp_path)
    assert pool.open(RUN, COSINE).step == stop
    for one in BATCHES[stop:]:
        step_together(pool, [one])
    assert torch.equal(state(pool), state(trained(tmp_path / "straight", 12)))


def test_the_log_alone_replays_to_the_same_adapter(tmp_path):
    pool = trained(tmp_path, 6)
    expected, published = state(pool), pool.versions.manifest(RUN, 6)
    for version in range(7):
        shutil.rmtree(tmp_path / adapter_path(RUN, version))
    again = new_pool(tmp_path)
    opened = again.open(RUN, COSINE)
    assert torch.equal(state(again), expected)
    assert opened.adapter_digest == published.adapter_digest


def test_the_newest_checkpoint_is_the_highest_number(tmp_path):
    trained(tmp_path, 10, checkpoints=(9, 10))
    assert new_pool(tmp_path).checkpoints.newest(RUN).step == 10


def test_what_is_not_committed_is_not_seen(tmp_path):
    trained(tmp_path, 10, checkpoints=(4, 9))
    (tmp_path / checkpoint_path(RUN, 9) / MANIFEST_NAME).unlink()
    (tmp_path / checkpoint_path(RUN, 4) / "leftover.tmp").write_bytes(b"half")
    assert new_pool(tmp_path).checkpoints.newest(RUN).step == 4


def test_a_damaged_checkpoint_is_passed_over(tmp_path, caplog):
    expected = state(trained(tmp_path, 10, checkpoints=(4, 9)))
    (tmp_path / checkpoint_path(RUN, 9) / "state.safetensors").write_bytes(b"x")
    pool = new_pool(tmp_path)
    assert pool.open(RUN, COSINE).step == 10
    assert torch.equal(state(pool), expected)
    assert "step-9" in caplog.text


def test_a_logged_step_without_its_version_is_taken_and_published(tmp_path):
    """Killed between the batch log and the manifest: the step counts, and its version appears."""
    pool = trained(tmp_path, 5)
    expected, digest = state(pool), pool.versions.manifest(RUN, 5).adapter_digest
    (tmp_path / adapter_path(RUN, 5) / MANIFEST_NAME).unlink()
    again = new_pool(tmp_path)
    opened = again.open(RUN, COSINE)
    assert (opened.step, opened.adapter_digest) == (5, digest)
    assert torch.equal(state(again), expected)


def test_a_step_without_its_log_did_not_happen(tmp_path):
    expected = state(trained(tmp_path / "four", 4))
    trained(tmp_path / "five", 5)
    (tmp_path / "five" / batch_log_path(RUN, 5)).unlink()
    shutil.rmtree(tmp_path / "five" / adapter_path(RUN, 5))
    pool = new_pool(tmp_path / "five")
    assert pool.open(RUN, COSINE).step == 4
    assert torch.equal(state(pool), expected)


def test_a_failed_publication_leaves_memory_and_is_found_on_disk(tmp_path, monkeypatch):
    expected = state(trained(tmp_path / "straight", 3))
    pool = trained(tmp_path / "failing", 2)
    with monkeypatch.context() as patched:
        patched.setattr(pool.versions, "publish_step", _disk_full)
        with pytest.raises(OSError, match="disk full"):
            step_together(pool, [BATCHES[2]])
    assert pool.find(RUN) is None
    assert pool.open(RUN, COSINE).step == 3
    assert torch.equal(state(pool), expected)


def _disk_full(*_arguments):
    raise OSError("disk full")


def test_an_answered_step_is_repeated_word_for_word(tmp_path):
    pool = trained(tmp_path, 3)
    (original,) = step_together(pool, [BATCHES[3]])
    repeated = new_pool(tmp_path)
    repeated.open(RUN, COSINE)
    assert repeated.answered(RUN, 4) == original.model_copy(update={"replayed": True})
    assert repeated.answered(RUN, 5) is None
    with pytest.raises(StepOutOfOrder):
        repeated.answered(RUN, 6)


def test_versions_are_immutable(tmp_path):
    pool = trained(tmp_path, 1)
    written = pool.versions.manifest(RUN, 1)
    pool.tenant(RUN).adapter.params_P.add_(1.0)
    assert pool.versions.write(RUN, written.team_id, 1, pool.tenant(RUN).adapter, {}) == written


def test_a_manifest_names_every_file_and_their_bytes(tmp_path):
    pool = trained(tmp_path, 1)
    folder = tmp_path / adapter_path(RUN, 1)
    manifest = pool.versions.manifest(RUN, 1)
    assert set(manifest.files) == {WEIGHTS_NAME, "adapter_config.json", RESULT_NAME}
    assert {path.name for path in folder.iterdir()} == {*manifest.files, MANIFEST_NAME}
    assert manifest.adapter_digest == manifest.files[WEIGHTS_NAME].sha256
    times = [(folder / name).stat().st_mtime_ns for name in (*manifest.files, MANIFEST_NAME)]
    assert all(before <= after for before, after in pairwise(times))


@pytest.mark.parametrize("source", [adapter_path(RUN, 3), checkpoint_path(RUN, 3)])
def test_a_warm_start_takes_parameters_and_nothing_else(tmp_path, source):
    pool = trained(tmp_path, 3, checkpoints=(3,))
    child = run_id("child")
    opened = pool.open(child, COSINE, init_from=source)
    assert opened.step == 0
    assert torch.equal(pool.tenant(child).adapter.params_P, pool.tenant(RUN).adapter.params_P)
    assert not pool.tenant(child).optimizer.second_P.any()
    # Its own state is enough from now on: the source and its own published versions may go.
    step_together(pool, [BATCHES[0].model_copy(update={"run_id": child})])
    expected = pool.tenant(child).adapter.params_P.detach().clone()
    shutil.rmtree(tmp_path / "runs" / RUN)
    for version in range(2):
        shutil.rmtree(tmp_path / adapter_path(child, version))
    again = new_pool(tmp_path)
    assert again.open(child, COSINE, init_from=source).step == 1
    assert torch.equal(again.tenant(child).adapter.params_P, expected)


@pytest.mark.parametrize("at", [3, 7])
def test_a_fork_trained_on_the_same_batches_is_the_parent_bit_for_bit(tmp_path, at):
    """Moments, random state, warm-up and the cosine's position go on as they were, across a kill of the trainer too."""
    pool, child = trained(tmp_path, 8, checkpoints=(at,)), run_id("fork")
    opened = pool.open(child, COSINE, init_from=checkpoint_path(RUN, at), is_fork=True)
    assert opened.step == at
    assert opened.adapter_digest == pool.versions.manifest(RUN, at).adapter_digest
    shutil.rmtree(tmp_path / "runs" / RUN)  # from now on its own state is enough
    for one in BATCHES[at:10]:
        step_together(pool, [one.model_copy(update={"run_id": child})])
    again = new_pool(tmp_path)
    assert again.open(child, COSINE, init_from=checkpoint_path(RUN, at), is_fork=True).step == 10
    for one in BATCHES[10:]:
        step_together(again, [one.model_copy(update={"run_id": child})])
    assert torch.equal(state(again, child), state(trained(tmp_path / "straight", 12)))


def test_a_fork_needs_a_checkpoint_of_its_team_and_shape(tmp_path):
    pool = trained(tmp_path, 2, checkpoints=(2,))
    stranger = COSINE.model_copy(update={"team_id": "cstranger" + "0" * 16})
    low_rank = spec(lora=COSINE.lora.model_copy(update={"rank": 4}))
    for source, run_spec, why in (
        (checkpoint_path(RUN, 2), stranger, "there is nothing"),
        (checkpoint_path(RUN, 2), low_rank, "its LoRA shape is another"),
        (adapter_path(RUN, 2), COSINE, "not 'rootstock.checkpoint'"),
    ):
        with pytest.raises(NotServable, match=why):
            pool.open(run_id("child"), run_spec, init_from=source, is_fork=True)
        assert pool.find(run_id("child")) is None


def test_a_warm_start_stays_inside_the_team_and_the_artifact_root(tmp_path):
    pool = trained(tmp_path / "root", 1)
    shutil.copytree(tmp_path / "root" / adapter_path(RUN, 1), tmp_path / "outside")
    stranger = COSINE.model_copy(update={"team_id": "cstranger" + "0" * 16})
    low_rank = spec(lora=COSINE.lora.model_copy(update={"rank": 4}))
    for source, run_spec, why in (
        ("../outside", COSINE, "outside the artifact root"),
        (adapter_path(RUN, 1), stranger, "there is nothing"),
        (adapter_path(RUN, 9), COSINE, "No such file"),
        (adapter_path(RUN, 1), low_rank, r"is \(8, 64\), this run's is \(4, 64\)"),
    ):
        with pytest.raises(NotServable, match=why):
            pool.open(run_id("child"), run_spec, init_from=source)
        assert pool.find(run_id("child")) is None


@pytest.mark.parametrize("others", [(), (run_id("beside"),)])
@pytest.mark.parametrize("strict", [False, True])
def test_after_stop_and_resume_every_loss_is_that_of_the_run_that_went_on(tmp_path, others, strict):
    """Moments, decay, schedule and packs go on as they were, for one run and for two that share every pack: K steps, bit for bit.
    A configuration with weight decay, since it must be the run's own and not the checkpoint's."""
    runs = (RUN, *others)
    settings = spec(optimizer=OptimizerSpec(learning_rate=3e-3, warmup_steps=2, weight_decay=0.05))
    batches = {run: recorded(run, 8, seed=number, count=4) for number, run in enumerate(runs)}

    def steps(pool, numbers) -> list[list[float]]:
        results = [step_together(pool, [batches[run][number] for run in runs]) for number in numbers]
        return [[(one.metrics["loss"], one.metrics["grad_norm"], one.adapter_digest) for one in step] for step in results]

    def opened(root):
        pool = new_pool(root, strict=strict)
        for run in runs:
            pool.open(run, settings)
        return pool

    expected = steps(opened(tmp_path / "straight"), range(8))
    stopped = opened(tmp_path / "stopped")
    told = steps(stopped, range(4))
    for run in runs:
        stopped.checkpoint(run)
    assert told + steps(opened(tmp_path / "stopped"), range(4, 8)) == expected

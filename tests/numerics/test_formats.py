"""What an earlier release wrote is read for ever (tests/data/artifacts); what a later one wrote is refused with its number."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.factories.engines import reader_of
from tests.fixtures.places import REPOSITORY
from tests.numerics.recorded import WEIGHTS, new_pool, recorded, run_id, spec, step_together
from trainer.contracts.adapters import CONFIG_NAME, FORMAT, MANIFEST_NAME, WEIGHTS_NAME, LoraSpec, adapter_path, checkpoint_path
from trainer.contracts.manifests import UnknownFormat, read_adapter_manifest, read_checkpoint_manifest
from trainer.contracts.training import OptimizerSpec
from trainer.core.errors import NotServable, UnknownState
from trainer.core.export import export_adapter
from trainer.core.tenants import RunSpec
from trainer.inference.errors import InvalidAdapter

KEPT = sorted((REPOSITORY / "tests" / "data" / "artifacts").glob("format-*"))
WRITTEN = spec(
    lora=LoraSpec(rank=1, alpha=2, target_modules=("q_proj", "v_proj")),
    optimizer=OptimizerSpec(learning_rate=3e-3, warmup_steps=1, weight_decay=0.01),
    seed=4,
)
"""Every kept run has a checkpoint of step 1, the batches of steps 1 and 2, and version 2."""


def kept(folder: Path, tmp_path: Path) -> tuple[Path, str, RunSpec]:
    root = tmp_path / "root"
    shutil.copytree(folder, root)
    (run,) = (path.name for path in (root / "runs").iterdir())
    return root, run, WRITTEN


def published(root: Path, run: str) -> dict[str, torch.Tensor]:
    return load_file(root / adapter_path(run, 2) / WEIGHTS_NAME)


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_a_run_of_an_earlier_release_resumes_and_goes_on(tmp_path, folder):
    root, run, settings = kept(folder, tmp_path)
    pool = new_pool(root)
    opened = pool.open(run, settings)
    assert (opened.step, opened.adapter_digest) == (2, pool.versions.manifest(run, 2).adapter_digest)
    assert pool.checkpoints.newest(run).step == 1
    (result,) = step_together(pool, [recorded(run, 3, seed=9, count=2, longest=12)[2]])
    pool.checkpoint(run)
    for path, name in ((result.adapter_path, "adapter"), (checkpoint_path(run, 3), "checkpoint")):
        written = json.loads((root / path / MANIFEST_NAME).read_text())
        assert (written["kind"], written["format"]) == (f"rootstock.{name}", FORMAT)


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_an_artifact_of_an_earlier_release_is_served_exported_and_begun_from(tmp_path, folder):
    root, run, settings = kept(folder, tmp_path)
    version = root / adapter_path(run, 2)
    assert reader_of(root, WEIGHTS).read(version, digest=None).rank == 1
    export_adapter(version, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {WEIGHTS_NAME, CONFIG_NAME}
    pool = new_pool(root)
    for name, source in (("one", adapter_path(run, 2)), ("two", checkpoint_path(run, 1))):
        pool.open(run_id(name), settings, init_from=source)
    begun = load_file(root / adapter_path(run_id("one"), 0) / WEIGHTS_NAME)
    assert all(torch.equal(begun[name], tensor) for name, tensor in published(root, run).items())
    with pytest.raises(NotServable, match="there is nothing"):
        stranger = settings.model_copy(update={"team_id": "cstranger" + "0" * 16})
        pool.open(run_id("three"), stranger, init_from=checkpoint_path(run, 1))


@pytest.mark.parametrize("number", [FORMAT + 1, 0])
@pytest.mark.parametrize(("read", "kind"), [(read_adapter_manifest, "adapter"), (read_checkpoint_manifest, "checkpoint")])
def test_a_number_that_is_not_read_is_named_with_the_way_out(read, kind, number):
    way_out = "upgrade" if number else "release before"
    with pytest.raises(UnknownFormat, match=rf"format {number}; this release reads 1 to {FORMAT}.*{way_out}"):
        read(json.dumps({"kind": f"rootstock.{kind}", "format": number, "anything": "new"}).encode())


@pytest.mark.parametrize(
    "text", [b"[]", b"{}", b'{"kind": "rootstock.cat", "format": 2}', b'{"format": "rootstock.adapter/x"}', b"x"]
)
def test_what_is_no_manifest_is_no_crash(text):
    with pytest.raises(ValueError):
        read_adapter_manifest(text)


def test_a_later_releases_run_is_refused_and_never_trained_over(tmp_path):
    """Passing over a checkpoint because its number is unknown would train the steps behind it again, from older moments."""
    root, run, settings = kept(KEPT[-1], tmp_path)
    newer = {"kind": "rootstock.checkpoint", "format": FORMAT + 1}
    (root / checkpoint_path(run, 1) / MANIFEST_NAME).write_text(json.dumps(newer))
    with pytest.raises(UnknownState, match=rf"step-1 of run {run}: the manifest has format {FORMAT + 1}"):
        new_pool(root).open(run, settings)
    version = root / adapter_path(run, 2)
    (version / MANIFEST_NAME).write_text(json.dumps(newer | {"kind": "rootstock.adapter"}))
    with pytest.raises(InvalidAdapter, match=f"format {FORMAT + 1}.*upgrade"):
        reader_of(root, WEIGHTS).read(version, digest=None)

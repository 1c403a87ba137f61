"""Starting a new run from what another run has left: from its parameters alone, or as a fork that goes on where it was.

Knows which of the two a folder is and whose it is. Refuses folders outside the artifact root, of another team or of another
base model. A warm start takes parameters: optimizer, schedule and step are the new run's own. A fork takes a checkpoint whole.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainer.contracts.adapters import MANIFEST_NAME
from trainer.contracts.manifests import ADAPTER_KIND, manifest_kind, read_adapter_manifest
from trainer.core.checkpoints import Checkpoint, CheckpointStore
from trainer.core.errors import NotServable
from trainer.core.tenants import SPEC_NAME, RunSpec, Tenant
from trainer.core.versions import VersionStore


@dataclass(frozen=True)
class Beginning:
    """Where a run without state of its own begins: at `path` below the artifact root, or with None at its seed."""

    path: str | None = None
    is_fork: bool = False


SEEDED = Beginning()


def warm_start(tenant: Tenant, path: str, versions: VersionStore, checkpoints: CheckpointStore) -> None:
    """`path` is relative to the artifact root. Raises NotServable naming it."""
    _from(versions.root, path, lambda folder: _load(tenant, folder, versions, checkpoints))


def fork(tenant: Tenant, path: str, checkpoints: CheckpointStore) -> None:
    """All of the checkpoint at `path`, its step among it. Raises NotServable naming it."""
    _from(checkpoints.root, path, lambda folder: tenant.restore(_checkpoint(tenant, folder, checkpoints)))


def _from(root: Path, path: str, load: Callable[[Path], None]) -> None:
    folder = (root / path).resolve()
    try:
        if not folder.is_relative_to(root.resolve()):
            raise NotServable("it lies outside the artifact root")
        load(folder)
    except (OSError, ValueError, NotServable) as problem:
        raise NotServable(f"init_from {path!r} cannot be started from: {problem}") from problem


def _load(tenant: Tenant, folder: Path, versions: VersionStore, checkpoints: CheckpointStore) -> None:
    described = (folder / MANIFEST_NAME).read_bytes()
    if manifest_kind(described) == ADAPTER_KIND:
        manifest = read_adapter_manifest(described)
        _check_owner(tenant, manifest.team_id)
        if manifest.base_digest != versions.base_digest:
            raise NotServable(f"it was trained on base weights {manifest.base_digest[:12]}")
        versions.load(manifest, tenant.adapter)
        return
    tenant.adapter.params_P.copy_(_checkpoint(tenant, folder, checkpoints).tensors["params"])


def _checkpoint(tenant: Tenant, folder: Path, checkpoints: CheckpointStore) -> Checkpoint:
    checkpoint = checkpoints.read(folder)
    _check_owner(tenant, checkpoint.manifest.team_id or _run_team(folder))
    if checkpoint.manifest.lora != tenant.spec.lora:
        raise NotServable("its LoRA shape is another")
    return checkpoint


def _run_team(checkpoint: Path) -> str:
    """Whose run it was, as the run's specification says beside a checkpoint of format 1."""
    return RunSpec.model_validate_json((checkpoint.parent.parent / SPEC_NAME).read_bytes()).team_id


def _check_owner(tenant: Tenant, team_id: str) -> None:
    if team_id != tenant.spec.team_id:
        raise FileNotFoundError("there is nothing")  # another team's adapter looks like none

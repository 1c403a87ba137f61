"""The adapter on disk and its identity: PEFT files plus a manifest, written last, that makes them visible."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from trainer.contracts.base import PublicId, Sha256, Wire

MANIFEST_NAME = "manifest.json"
WEIGHTS_NAME = "adapter_model.safetensors"
CONFIG_NAME = "adapter_config.json"
RANK_MAX = 256
FORMAT: Literal[2] = 2
"""Of the manifests that this release writes; `trainer.contracts.manifests` reads the one before too."""


class LoraSpec(Wire):
    """Shape of one adapter. The scale applied to B·A is alpha / rank."""

    rank: Annotated[int, Field(ge=1, le=RANK_MAX)] = 8
    alpha: Annotated[float, Field(gt=0, le=1024)] = 16.0
    target_modules: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class FileEntry(Wire):
    sha256: Sha256
    size_bytes: Annotated[int, Field(ge=0)]


class AdapterManifest(Wire):
    """`adapter_digest` is the sha256 of the weights file; an engine that loads the version verifies it."""

    kind: Literal["rootstock.adapter"] = "rootstock.adapter"
    format: Literal[2] = FORMAT
    run_id: PublicId
    team_id: PublicId
    version: Annotated[int, Field(ge=0)]
    base_model: str
    base_digest: Sha256
    lora: LoraSpec
    adapter_digest: Sha256
    files: dict[str, FileEntry]
    created_at: datetime


class CheckpointManifest(Wire):
    """Everything a run needs to go on: adapter, moments, RNG, counters. Committed once this manifest exists."""

    kind: Literal["rootstock.checkpoint"] = "rootstock.checkpoint"
    format: Literal[2] = FORMAT
    run_id: PublicId
    team_id: PublicId | None = None
    """None in one of format 1: then the run's specification names the team."""
    step: Annotated[int, Field(ge=0)]
    base_digest: Sha256
    lora: LoraSpec
    files: dict[str, FileEntry]
    created_at: datetime


def adapter_path(run_id: str, version: int) -> str:
    """Where a version lives, relative to the artifact root."""
    return f"runs/{run_id}/adapters/v{version}"


def checkpoint_path(run_id: str, step: int) -> str:
    return f"runs/{run_id}/checkpoints/step-{step}"


def batch_log_path(run_id: str, step: int) -> str:
    return f"runs/{run_id}/batches/step-{step}.json.zst"

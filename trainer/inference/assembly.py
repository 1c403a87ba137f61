"""Puts a service together around our own engine. Knows how its parts fit; refuses to know the command line."""

from collections.abc import Callable
from pathlib import Path

import torch

from trainer.contracts.catalogue import BaseModelSpec
from trainer.inference.base_model import BaseModel
from trainer.inference.core import EngineCore
from trainer.inference.engine import Engine
from trainer.inference.limits import EngineLimits
from trainer.inference.llama import load_llama
from trainer.inference.metrics import EngineMetrics
from trainer.inference.service import InferenceService


def torch_service(
    spec: BaseModelSpec,
    *,
    artifacts: Path,
    limits: EngineLimits,
    on_fatal: Callable[[], None],
    device: torch.device,
    dtype: torch.dtype,
) -> InferenceService:
    """The base model on `device`, served by this process."""
    base, metrics = BaseModel.of(spec), EngineMetrics()
    core = EngineCore(load_llama(base.weights, device=device, dtype=dtype, context_max=base.context_tokens), limits)
    engine = Engine(core, limits, metrics, on_fatal=on_fatal)
    return InferenceService(base, engine=engine, reader=base.adapter_reader(artifacts, limits), limits=limits, metrics=metrics)

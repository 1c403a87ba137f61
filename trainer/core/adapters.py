"""Low-rank adapters: one flat buffer per run.

Knows factors A and B, where they lie, and their scale. Refuses to know the passes that use them, optimizers and files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.contracts.adapters import LoraSpec
from trainer.core.errors import NotServable


@dataclass(frozen=True)
class TargetShape:
    """A linear map of the base model that an adapter can attach to."""

    layer: int
    name: str
    in_size: int
    out_size: int


@dataclass(frozen=True)
class Factors:
    """A [r, in] and B [out, r], views into a flat buffer."""

    a: Tensor
    b: Tensor


class Adapter:
    """One run's factors in one flat buffer, their gradients in another: clipping, AdamW and files see a single vector.

    Elements lie layer by layer, target by target, A before B. The gradient takes memory from its first use on until it is
    dropped: a run between two steps holds parameters and moments alone.
    """

    def __init__(
        self, spec: LoraSpec, shapes: Sequence[TargetShape], dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> None:
        unknown = sorted(set(spec.target_modules) - {shape.name for shape in shapes})
        if unknown or not spec.target_modules:
            raise NotServable(f"target_modules: the base model has no {unknown or 'module for an empty list'}")
        self.spec = spec
        self.names = frozenset(spec.target_modules)
        self.shapes = tuple(shape for shape in shapes if shape.name in self.names)
        size = sum(spec.rank * (shape.in_size + shape.out_size) for shape in self.shapes)
        self.params_P = torch.zeros(size, dtype=dtype, device=device)
        self._grads_P: Tensor | None = None

    @property
    def scale(self) -> float:
        return self.spec.alpha / self.spec.rank

    @property
    def grads_P(self) -> Tensor:
        """What passes have added up since it was dropped last; zeros before the first."""
        if self._grads_P is None:
            self._grads_P = torch.zeros_like(self.params_P)
        return self._grads_P

    def layered(self, flat_P: Tensor) -> dict[str, Factors]:
        """Views into a flat vector, A [layers, r, in] and B [layers, out, r] of each target."""
        first = [shape for shape in self.shapes if shape.layer == self.shapes[0].layer]
        rank, found, start = self.spec.rank, {}, 0
        layers_LP = flat_P.view(len(self.shapes) // len(first), -1)
        for shape in first:
            middle, end = start + rank * shape.in_size, start + rank * (shape.in_size + shape.out_size)
            found[shape.name] = Factors(
                layers_LP[:, start:middle].view(-1, rank, shape.in_size),
                layers_LP[:, middle:end].view(-1, shape.out_size, rank),
            )
            start = end
        return found

    def drop_gradient(self) -> None:
        self._grads_P = None

    def initialise(self, generator: torch.Generator) -> None:
        """A uniform in ±1/√in (Kaiming with slope √5, what PEFT does), B zero: version 0 equals the base model."""
        for _, factors in self.named_tensors():
            bound = factors.a.shape[1] ** -0.5
            drawn = torch.empty(factors.a.shape, dtype=factors.a.dtype).uniform_(-bound, bound, generator=generator)
            factors.a.copy_(drawn)
            factors.b.zero_()

    def named_tensors(self) -> Iterator[tuple[TargetShape, Factors]]:
        """Views, made when asked for: held, they would weigh a tenth of a small adapter."""
        layered = self.layered(self.params_P)
        layers = sorted({shape.layer for shape in self.shapes})
        for shape in self.shapes:
            index, factors = layers.index(shape.layer), layered[shape.name]
            yield shape, Factors(factors.a[index], factors.b[index])

    def clear(self) -> None:
        """Forget everything: what a released slot must hold."""
        self.params_P.zero_()
        if self._grads_P is not None:
            self._grads_P.zero_()
        self.drop_gradient()

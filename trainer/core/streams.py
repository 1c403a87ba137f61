"""From the wire's samples to arrays: validated, with the signals of the trained tokens alone.

Knows the streams of `trainer.contracts.samples` and everything that can be wrong with them. Refuses to know models beyond
vocabulary and context, and how a loss uses a signal. Tenants' data is hostile: what passes here cannot break a pack.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from trainer.contracts.samples import TrainBatch, TrainSample
from trainer.core.errors import BadBatch

SIGNAL_MAX = 1e6
"""Largest magnitude of an advantage, a weight or a temperature. Beyond it lies a mistake, not a signal."""

STALENESS_MAX = 32

WIRE_NAMES = {"sampler_logprobs": "logprobs"}
"""Signals that the wire calls otherwise."""


@dataclass(frozen=True)
class Signals:
    """Per trained token (P of them), in the order of the flat rows. A weight of 0 takes the token out of its component."""

    temperatures: Tensor
    sampler_logprobs: Tensor
    advantages: Tensor
    rl_weights: Tensor
    ce_weights: Tensor
    ref_kl_weights: Tensor
    ref_logprobs: Tensor

    @classmethod
    def concatenated(cls, parts: Sequence["Signals"]) -> "Signals":
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in SIGNALS))

    def __getitem__(self, tokens: slice) -> "Signals":
        """The signals of some of the tokens."""
        return Signals(*(getattr(self, name)[tokens] for name in SIGNALS))


SIGNALS = tuple(field.name for field in fields(Signals))
WEIGHTS = ("rl_weights", "ce_weights", "ref_kl_weights")


@dataclass(frozen=True)
class SampleStreams:
    """`trained_P` are indices t ≥ 1 of the tokens that carry a weight; the logits that predict token t stand at t − 1."""

    token_ids_T: np.ndarray
    trained_P: np.ndarray
    signals: Signals
    versions_P: np.ndarray

    @property
    def length(self) -> int:
        return len(self.token_ids_T)


@dataclass(frozen=True)
class Denominators:
    """Token counts of the whole batch, from its header, so that any split into packs gives the same gradient."""

    rl: int
    ce: int
    ref_kl: int


@dataclass(frozen=True)
class BatchStreams:
    """`samples` are those that train something; the others change no gradient and are neither computed nor billed."""

    samples: tuple[SampleStreams, ...]
    denominators: Denominators

    @property
    def tokens(self) -> int:
        return sum(sample.length for sample in self.samples)


def read_batch(batch: TrainBatch, *, vocabulary_size: int, context_tokens: int, dtype: torch.dtype) -> BatchStreams:
    """Raises BadBatch naming the sample and the stream that is wrong."""
    samples = []
    for index, sample in enumerate(batch.samples):
        try:
            samples.append(_read_sample(sample, vocabulary_size, context_tokens, dtype))
            _check_versions(samples[-1], batch.step)
        except BadBatch as problem:
            raise BadBatch(f"samples[{index}]: {problem}") from None
    training = tuple(sample for sample in samples if len(sample.trained_P))
    if not training:
        raise BadBatch("no token of any sample carries a weight")
    denominators = Denominators(batch.n_rl, batch.n_ce, batch.n_ref_kl)
    for name in ("rl", "ce", "ref_kl"):
        count = sum(int(torch.count_nonzero(getattr(s.signals, f"{name}_weights"))) for s in training)
        if count > getattr(denominators, name):
            raise BadBatch(f"n_{name} is {getattr(denominators, name)}, but {count} tokens carry {name}_weights")
    return BatchStreams(training, denominators)


def _read_sample(sample: TrainSample, vocabulary_size: int, context_tokens: int, dtype: torch.dtype) -> SampleStreams:
    ids = np.asarray(sample.token_ids, dtype=np.int64)
    if len(ids) > context_tokens:
        raise BadBatch(f"{len(ids)} tokens exceed the context of {context_tokens}")
    if ids.min() < 0 or ids.max() >= vocabulary_size:
        raise BadBatch(f"token_ids: {ids[(ids < 0) | (ids >= vocabulary_size)][0]} is outside the vocabulary")
    streams = _streams(sample, len(ids))
    _check_weights(sample, streams)
    weighted = np.logical_or.reduce([streams[name] != 0 for name in WEIGHTS])
    trained = np.flatnonzero(weighted)
    if (streams["temperatures"][trained] <= 0).any():
        raise BadBatch("temperatures: a trained token has none above 0")
    table = torch.from_numpy(np.stack([streams[name][trained] for name in SIGNALS])).to(dtype)
    return SampleStreams(ids, trained, Signals(*table), np.asarray(sample.policy_versions, dtype=np.int64)[trained])


def _streams(sample: TrainSample, length: int) -> dict[str, np.ndarray]:
    """Each signal of the sample [T]; zeros where the wire has none."""
    table = np.zeros((len(SIGNALS), length))
    wire_names = [WIRE_NAMES.get(name, name) for name in SIGNALS]
    for row, name in zip(table, wire_names, strict=True):
        values = getattr(sample, name)
        if values is not None:
            row[:] = values
    largest = np.abs(table).max(axis=1)
    if not (largest <= SIGNAL_MAX).all():  # a NaN is not
        name, worst = next((name, worst) for name, worst in zip(wire_names, largest, strict=True) if not worst <= SIGNAL_MAX)
        problem = f"{worst:g} is beyond {SIGNAL_MAX:g}" if np.isfinite(worst) else "an entry is not finite"
        raise BadBatch(f"{name}: {problem}")
    return dict(zip(SIGNALS, table, strict=True))


def _check_weights(sample: TrainSample, streams: dict[str, np.ndarray]) -> None:
    """Components that compare with the sampler need its log-probability; each needs the stream that it reads."""
    sampled = np.asarray(sample.mask, dtype=bool)
    for name, needs in (("rl_weights", "advantages"), ("ref_kl_weights", "ref_logprobs")):
        used = streams[name] != 0
        if (used & ~sampled).any():
            raise BadBatch(f"{name}: token {np.flatnonzero(used & ~sampled)[0]} has a weight but was not sampled")
        if used.any() and getattr(sample, needs) is None:
            raise BadBatch(f"{needs} is missing, but {name} has entries")
    if streams["ce_weights"][0] != 0:
        raise BadBatch("ce_weights: nothing precedes the first token that could predict it")
    if (streams["sampler_logprobs"] > 1e-3).any():
        raise BadBatch("logprobs: a log-probability is above 0")


def _check_versions(sample: SampleStreams, step: int) -> None:
    if len(sample.trained_P) and sample.versions_P.max() >= step:
        raise BadBatch(f"policy_versions: version {sample.versions_P.max()} does not exist before step {step} is done")


def staleness_of(streams: BatchStreams, step: int) -> dict[str, float]:
    """How many versions behind each sample's oldest trained token was: mean, maximum, and the share of samples at each age
    (ages from STALENESS_MAX on together)."""
    ages = np.array([step - 1 - sample.versions_P.min() for sample in streams.samples])
    binned = np.minimum(ages, STALENESS_MAX)
    shares = {f"sample_staleness_share_{age}": float((binned == age).mean()) for age in np.unique(binned)}
    return {"sample_staleness_mean": float(ages.mean()), "sample_staleness_max": float(ages.max()), **shares}

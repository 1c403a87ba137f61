"""Two sides in turn, A B A B …, so that a machine that slows down slows both. Knows clocks and medians alone."""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pair:
    """CPU seconds of this process for each side."""

    ours_s: float
    theirs_s: float


def cpu_s(work: Callable[[], object]) -> float:
    """CPU time of this process: other processes on the machine do not count."""
    gc.collect()
    began_s = time.process_time()
    work()
    return time.process_time() - began_s


def in_turn(ours: Callable[[], object], theirs: Callable[[], object], pairs: int) -> list[Pair]:
    """One unmeasured round, then `pairs` measured ones."""
    ours()
    theirs()
    return [Pair(cpu_s(ours), cpu_s(theirs)) for _ in range(pairs)]


@dataclass(frozen=True, slots=True)
class Summary:
    median: float
    low: float
    high: float


def summary(samples: list[float]) -> Summary:
    """Median and the whole spread: with five pairs, a quartile would be a guess."""
    return Summary(statistics.median(samples), min(samples), max(samples))

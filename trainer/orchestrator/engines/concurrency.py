"""How many rollouts are in flight: as many as the engines take without queueing, from one group to what the owner allows.

Knows additive increase and multiplicative decrease over what the engines say of themselves. Refuses to know rollouts and HTTP.
Runs that share an engine each see the same queue, so that they give way together and share what there is.

After a cut the limit rests until rollouts started before it have gone home, else one queue would be answered by many cuts. A
limit that is not used is not raised. Engines that say nothing change nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

QUEUE_SHARE = 0.25
"""Of the running sequences: a queue below this keeps the batch full, one above it only makes rollouts older."""
KV_SHARE = 0.95
CUT = 0.8
REST_S = 10.0
RAISE_S = 2.0


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """Sequences that decode and requests that wait, over all replicas; the fullest replica's share of its KV cache."""

    running: float
    waiting: float
    kv_share: float

    @property
    def is_pressed(self) -> bool:
        return self.waiting > max(1.0, QUEUE_SHARE * self.running) or self.kv_share > KV_SHARE


class InflightLimit:
    """`floor`: rollouts of the largest group, `ceiling`: the owner's own limit, at which it begins."""

    def __init__(self, *, floor: int, ceiling: int):
        self.value = max(floor, ceiling)
        self._floor = floor
        self._ceiling = self.value
        self._cut_s = self._raised_s = float("-inf")
        self._loads: list[EngineLoad] = []

    def observe(self, load: EngineLoad, *, inflight: int, now_s: float) -> None:
        """Follow what the engines say at a moment of the monotonic clock."""
        self._loads.append(load)
        if load.is_pressed:
            if now_s - self._cut_s >= REST_S and inflight:
                self.value = max(self._floor, int(CUT * min(self.value, inflight + self._floor)))
                self._cut_s = now_s
        elif inflight + self._floor > self.value and now_s - max(self._raised_s, self._cut_s) >= RAISE_S:
            self.value = min(self._ceiling, self.value + self._floor)
            self._raised_s = now_s

    def take_metrics(self) -> dict[str, float]:
        """Of the time since the last call; the engines' own only where they said something."""
        loads, self._loads = self._loads, []
        limit = {"inflight_limit": float(self.value)}
        if not loads:
            return limit
        return limit | {
            "engine_waiting_max": max(load.waiting for load in loads),
            "engine_running_max": max(load.running for load in loads),
            "engine_kv_share_max": max(load.kv_share for load in loads),
        }


def load_of(texts: Iterable[str]) -> EngineLoad | None:
    """What the replicas' Prometheus texts say together; None where one of them does not count requests. Ours and vLLM's own names
    are both known."""
    running = waiting = kv_share = 0.0
    for text in texts:
        series = _series(text)
        if (own := _first(series, "rootstock_engine_requests_running", "vllm:num_requests_running")) is None:
            return None
        running += own
        waiting += _first(series, "rootstock_engine_requests_waiting", "vllm:num_requests_waiting") or 0.0
        kv_share = max(kv_share, _kv_share(series))
    return EngineLoad(running, waiting, kv_share)


def _kv_share(series: dict[str, float]) -> float:
    if total := series.get("rootstock_engine_kv_blocks_total", 0.0):
        return series.get("rootstock_engine_kv_blocks_used", 0.0) / total
    return series.get("vllm:kv_cache_usage_perc", 0.0)


def _first(series: dict[str, float], *names: str) -> float | None:
    return next((series[name] for name in names if name in series), None)


def _series(text: str) -> dict[str, float]:
    """Gauges by name, summed over their labels."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith(("rootstock_engine_", "vllm:")):
            name, _, value = line.rpartition(" ")
            name = name.partition("{")[0]
            values[name] = values.get(name, 0.0) + float(value)
    return values

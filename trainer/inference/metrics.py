"""What an engine counts, as Prometheus series in a registry of its own: two engines in one process do not share numbers."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from trainer.inference.sequence import Sequence

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_STEP_SECONDS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5)
_COUNTS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)


class EngineMetrics:
    """Series names start with `rootstock_engine_`; units stand last."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.running = self._gauge("requests_running", "Sequences in the running batch")
        self.waiting = self._gauge("requests_waiting", "Requests that wait for a place in the batch")
        self.finished = self._counter("requests_finished", "Requests by how they ended", ("reason",))
        self.prompt_tokens = self._counter("prompt_tokens", "Prompt tokens of finished requests, aborted ones included")
        self.completion_tokens = self._counter("completion_tokens", "Sampled tokens of finished requests, aborted ones included")
        self.kv_blocks_used = self._gauge("kv_blocks_used", "KV cache blocks held by running sequences")
        self.kv_blocks_total = self._gauge("kv_blocks_total", "KV cache blocks")
        self.adapters_registered = self._gauge("adapters_registered", "Adapter names that requests may use")
        self.adapters_resident = self._gauge("adapters_resident", "Adapters in RAM")
        self.adapter_ram_bytes = self._gauge("adapter_ram_bytes", "Bytes of the adapters in RAM")
        self.adapter_loads = self._counter("adapter_loads", "Adapters read from disk")
        self.adapter_load_s = self._histogram("adapter_load_seconds", "Time to read and check an adapter", _SECONDS)
        self.in_flight_at_swap = self._histogram("requests_in_flight_at_swap", "Running sequences when an adapter came", _COUNTS)
        self.time_to_first_token_s = self._histogram(
            "time_to_first_token_seconds", "From submission to the first token", _SECONDS
        )
        self.request_s = self._histogram("request_seconds", "From submission to the last token", _SECONDS)
        self.step_s = self._histogram("step_seconds", "One step of the whole batch", _STEP_SECONDS)
        self.step_rows = self._histogram("step_rows", "Sequences in one step", _COUNTS)

    def book(self, sequence: Sequence, now_s: float) -> None:
        """Count a sequence that has ended."""
        self.finished.labels(str(sequence.finish_reason)).inc()
        self.prompt_tokens.inc(len(sequence.prompt))
        self.completion_tokens.inc(len(sequence.token_ids))
        self.request_s.observe(now_s - sequence.submitted_at_s)
        if sequence.first_token_at_s is not None:
            self.time_to_first_token_s.observe(sequence.first_token_at_s - sequence.submitted_at_s)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(name, text, labels, namespace="rootstock_engine", registry=self._registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, namespace="rootstock_engine", registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, namespace="rootstock_engine", buckets=buckets, registry=self._registry)

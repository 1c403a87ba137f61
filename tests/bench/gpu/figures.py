"""What was found, as JSON and as the page `docs/gpu.md`. Knows every figure by name, those that nobody has taken included.

{"measured_at", "device", "torch", "seconds", "figures": [{"id", "value", "failed"}]}
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

NOT_RUN = "not run"
LOST = "**lost**"


@dataclass(frozen=True, slots=True)
class Kind:
    """`most` is what a figure may be, where it may not be anything; a `promise` that is lost makes the command fail."""

    what: str
    unit: str
    most: float | None = None
    promise: bool = False

    def verdict(self, value: float) -> str:
        if self.most is None:
            return ""
        return "holds" if value <= self.most else LOST


KINDS = {
    "train.1": Kind("training, one run", "tokens/s"),
    "train.4": Kind("training, four runs in shared packs", "tokens/s"),
    "isolation.content": Kind(
        "a run's gradient before and after its neighbour's content is swapped", "largest gap", 0, promise=True
    ),
    "isolation.strict": Kind("strict isolation: a run's gradient beside a neighbour and alone", "largest gap", 0, promise=True),
    "engine.base": Kind("decoding, base model", "tokens/s"),
    "engine.1": Kind("decoding, one adapter", "tokens/s"),
    "engine.8": Kind("decoding, eight adapters mixed", "tokens/s"),
    "swap": Kind("stall of others during a hot load, p99", "decode steps", 0.10),
    "agreement.bfloat16": Kind("log-probabilities, engine against trainer, bfloat16", "mean gap", 0.05, promise=True),
    "agreement.float32": Kind("the same in float32, on a smaller model", "mean gap", 1e-5, promise=True),
}

HEAD = """# On a GPU

Written by `make gpu-check` from `reports/gpu.json`: one GPU, no network, under eight minutes. Weights are random, drawn on the
device: 1.5 billion parameters in bfloat16 (16 layers of width 2,048, a vocabulary of 128,256), adapters of rank 16 on all
linear layers. A training step has 16 samples of 512 tokens a run, half of each learned from, in packs of 8,192 tokens; the engine
decodes 64 rows of 128 tokens each, through its core without the server. A gap of 0 means equal bits. A stall is what a token
of the others came later than a decode step takes, in such steps, while versions are read from disk and placed one by one.
bfloat16 rounds a random model's logits by a few hundredths; an adapter that is not applied would show as ten times that.
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """`failed` says why there is no value."""

    id: str
    value: float | None = None
    failed: str = ""

    @property
    def passes(self) -> bool:
        """A slow device is no failure; a check without an answer, or a broken promise, is."""
        kind = KINDS[self.id]
        return self.value is not None and not (kind.promise and kind.verdict(self.value) == LOST)


def store(path: Path, figures: list[Figure], **known: Any) -> dict[str, Any]:
    report = {**known, "figures": [asdict(figure) for figure in figures]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")
    return report


def document(report: dict[str, Any] | None) -> str:
    found = {} if report is None else {one["id"]: one for one in report["figures"]}
    lines = [HEAD, _where(report), "", "| | figure | unit | at most | |", "|---|---|---|---|---|"]
    for name, kind in KINDS.items():
        most = "" if kind.most is None else f"{kind.most:g}"
        lines.append(f"| {kind.what} | {_value(found.get(name))} | {kind.unit} | {most} | {_verdict(kind, found.get(name))} |")
    return "\n".join(lines) + "\n"


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _where(report: dict[str, Any] | None) -> str:
    if report is None:
        return "No GPU has run it yet."
    return f"{report['device']}, torch {report['torch']}, {report['seconds']:.0f} s in all."


def _value(one: dict[str, Any] | None) -> str:
    if one is None:
        return NOT_RUN
    return f"failed: {one['failed']}" if one["failed"] else shown(one["value"])


def _verdict(kind: Kind, one: dict[str, Any] | None) -> str:
    return "" if one is None or one["failed"] else kind.verdict(one["value"])

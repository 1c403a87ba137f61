"""`python -m tests.bench.gpu [--device cuda] [--tiny]`: measure trainer and engine on one device, and write what was found.

Knows the order of things. Without the device it says so and ends well. A check that fails leaves the others' figures alone, and
the command ends with 1; so it does where a bound is lost. On a CPU nothing is written: those figures would say nothing.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import torch
from rich.console import Console

from tests.bench.gpu import serving, training
from tests.bench.gpu.figures import KINDS, NOT_RUN, Figure, document, shown, store
from tests.bench.gpu.scale import FULL, TINY
from tests.bench.gpu.world import World
from tests.fixtures.places import REPOSITORY
from trainer.core.determinism import fix_order_of_sums

REPORT, DOCUMENT = REPOSITORY / "reports" / "gpu.json", REPOSITORY / "docs" / "gpu.md"
console = Console(highlight=False)


def checks(world: World, exact: Callable[[], World]) -> dict[str, Callable[[], list[Figure]]]:
    """By the beginning of the names of the figures that each gives. What is exact comes first: time may run out."""
    return {
        "isolation.content": lambda: training.content_swap(world),
        "isolation.strict": lambda: training.strict(world),
        "agreement.bfloat16": lambda: serving.agreement(world),
        "agreement.float32": lambda: serving.agreement(exact()),
        "train.1": lambda: training.speed(world, 1),
        "train.4": lambda: training.speed(world, 4),
        "engine": lambda: serving.speed(world),
        "swap": lambda: serving.swap(world),
    }


def attempt(name: str, check: Callable[[], list[Figure]]) -> list[Figure]:
    began_s = time.monotonic()
    try:
        found = check()
    except Exception as problem:
        why = f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}"[:200]
        found = [Figure(one, failed=why) for one in KINDS if one.startswith(name)]
    for figure in found:
        _print(figure, time.monotonic() - began_s)
    return found


def _print(figure: Figure, taken_s: float) -> None:
    kind = KINDS[figure.id]
    if figure.value is None:
        console.print(f"{kind.what}: [red]failed[/red]: {figure.failed}", markup=True)
    else:
        found = f"{shown(figure.value)} {kind.unit}  {kind.verdict(figure.value)}"
        console.print(f"{kind.what}: {found}  [dim]{taken_s:.0f} s[/dim]")


def missing(device: torch.device) -> str:
    """Why nothing can be measured there; empty where it can."""
    if device.type == "cuda" and not torch.cuda.is_available():
        return "torch finds no CUDA device" + ("" if torch.version.cuda else ": this build of it is for CPUs alone")
    return ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gpu", description="Measure one GPU.")
    parser.add_argument("--device", default="cuda", help="torch's name of it")
    parser.add_argument("--tiny", action="store_true", help="the same checks on a model of a few thousand parameters")
    options = parser.parse_args(arguments)
    device = torch.device(options.device)
    if why := missing(device):
        console.print(f"gpu-check {NOT_RUN}: {why}")
        return 0
    fix_order_of_sums(device)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rootstock-gpu-") as folder:
        scale = TINY if options.tiny else FULL
        world = World(Path(folder), scale, device)
        steps = checks(world, lambda: World(Path(folder), scale, device, exact=True))
        figures = [figure for name, check in steps.items() for figure in attempt(name, check)]
    if device.type != "cpu" and not options.tiny:
        _write(figures, device, time.monotonic() - began_s)
    return 0 if all(figure.passes for figure in figures) else 1


def _write(figures: list[Figure], device: torch.device, seconds: float) -> None:
    known = {"measured_at": datetime.now(UTC).isoformat(timespec="seconds"), "torch": torch.__version__}
    report = store(REPORT, figures, device=torch.cuda.get_device_name(device), seconds=seconds, **known)
    DOCUMENT.write_text(document(report))


if __name__ == "__main__":
    sys.exit(main())

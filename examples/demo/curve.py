"""Draw the reward curves of demo reports as one SVG: `python examples/demo/curve.py REPORT … --out FILE`.

Knows the reports' `rewards` and plain SVG; needs no package. A thin line is the mean of each step, a thick one that of five.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 28, 46
COLOURS = ("#1d5fa8", "#b4531a", "#2c7a3f", "#7b3fa0")
INK, GRID = "#333333", "#dddddd"
WINDOW = 5


class Curve(NamedTuple):
    label: str
    rewards: list[float]


def curves_of(report: dict[str, Any]) -> list[Curve]:
    """One curve per team of a report."""
    return [
        Curve(f"{report['model']}, {team}, seed {report['seed']}", figures["rewards"])
        for team, figures in report["teams"].items()
    ]


def smoothed(values: Sequence[float]) -> list[float]:
    """The mean of the last WINDOW values, of fewer at the start."""
    return [fmean(values[max(0, end - WINDOW) : end]) for end in range(1, len(values) + 1)]


def draw(curves: Sequence[Curve]) -> str:
    """The SVG's text. Rewards lie between 0 and 1."""
    steps = max(len(curve.rewards) for curve in curves)
    parts = [*_frame(steps)]
    for index, curve in enumerate(curves):
        colour = COLOURS[index % len(COLOURS)]
        parts += [
            _line(curve.rewards, steps, colour, width=1, opacity=0.45),
            _line(smoothed(curve.rewards), steps, colour, width=2.5),
        ]
        parts.append(_text(LEFT + 12, TOP + 16 + 18 * index, curve.label, colour=colour))
    style = 'font-family="system-ui, sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" {style}>'
    title = "<title>Mean reward of each training step</title>"
    return "\n".join([head, title, f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', *parts, "</svg>", ""])


def _x(step: float, steps: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (step - 1) / max(1, steps - 1)


def _y(reward: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - reward)


def _frame(steps: int) -> Iterable[str]:
    for tenth in range(0, 11, 2):
        y = _y(tenth / 10)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{GRID}"/>'
        yield _text(LEFT - 8, y + 4, f"{tenth / 10:.1f}", anchor="end")
    for step in [1, *range(10, steps + 1, 10)]:
        yield _text(_x(step, steps), HEIGHT - BOTTOM + 18, str(step), anchor="middle")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "training step", anchor="middle")
    yield _text(LEFT - 8, TOP - 12, "reward", anchor="end")


def _line(rewards: Sequence[float], steps: int, colour: str, *, width: float, opacity: float = 1.0) -> str:
    points = " ".join(f"{_x(step, steps):.1f},{_y(reward):.1f}" for step, reward in enumerate(rewards, 1))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-opacity="{opacity}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{text}</text>'


def main() -> None:
    parser = argparse.ArgumentParser(prog="python examples/demo/curve.py", description="Draw reward curves of demo reports.")
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(draw([curve for path in options.reports for curve in curves_of(json.loads(path.read_text()))]))


if __name__ == "__main__":
    main()

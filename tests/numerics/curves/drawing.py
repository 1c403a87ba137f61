"""A plan's curves as one SVG: a panel per objective, a thin line per seed, a thick one for their mean.

Knows the figures of docs/figures/learning.json and plain SVG. Refuses to know how they were made.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

WIDTH, HEIGHT = 380, 200
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 28, 36
LINE, INK, GRID = "#1d5fa8", "#333333", "#dddddd"
UNITS = {"reward": "mean reward", "agreement": "minus KL to the reference, nats per reply", "likelihood": "log-probability, nats"}


def draw(name: str, plan: dict[str, Any]) -> str:
    """The SVG's text."""
    panels = list(plan["objectives"].items())
    style = 'font-family="system-ui, sans-serif" font-size="11"'
    size = f"0 0 {WIDTH * len(panels)} {HEIGHT}"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img" {style}>']
    parts += [f"<title>{name}: each training step of five seeds</title>"]
    parts += [f'<rect width="{WIDTH * len(panels)}" height="{HEIGHT}" fill="#ffffff"/>']
    for index, (objective, shown) in enumerate(panels):
        parts += [f'<g transform="translate({WIDTH * index} 0)">', *_panel(f"{name}: {UNITS[objective]}", shown["steps"]), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _panel(title: str, seeds: Sequence[Sequence[float]]) -> Iterable[str]:
    low, high = min(map(min, seeds)), max(map(max, seeds))
    steps = len(seeds[0])

    def point(step: int, value: float) -> str:
        x = LEFT + (WIDTH - LEFT - RIGHT) * (step - 1) / max(1, steps - 1)
        y = TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / ((high - low) or 1.0)
        return f"{x:.1f},{y:.1f}"

    yield _text(LEFT, 16, title)
    for value in (low, (low + high) / 2, high):
        y = float(point(1, value).split(",")[1])
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{GRID}"/>'
        yield _text(LEFT - 6, y + 4, f"{value:.3g}", anchor="end")
    for step in range(1, steps + 1):
        yield _text(float(point(step, low).split(",")[0]), HEIGHT - BOTTOM + 16, str(step), anchor="middle")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "training step", anchor="middle")
    for line in seeds:
        yield _line([point(step, value) for step, value in enumerate(line, 1)], width=1, opacity=0.4)
    means = [fmean(values) for values in zip(*seeds, strict=True)]
    yield _line([point(step, value) for step, value in enumerate(means, 1)], width=2.5)


def _line(points: Sequence[str], *, width: float, opacity: float = 1.0) -> str:
    return (
        f'<polyline points="{" ".join(points)}" fill="none" stroke="{LINE}" stroke-width="{width}" stroke-opacity="{opacity}"/>'
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{INK}">{text}</text>'

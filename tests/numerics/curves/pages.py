"""What docs/algorithms.md says of the figures: each part stands there between its two markers, written by `make curves`.

Knows the two reports and the page's markers. Refuses to know how the figures were made, and which result would be welcome.
"""

import re
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from tests.fixtures.places import REPOSITORY
from tests.numerics.curves.plans import GAIN_MIN

FIGURES = REPOSITORY / "docs" / "figures"
PAGE = REPOSITORY / "docs" / "algorithms.md"
TASKS = ("plain", "lined")


def learning_table(report: dict[str, Any]) -> str:
    """One line per plan and objective."""
    lines = ["| shown | configuration | objective | before | after | seeds that gain 0.2 |", "|---|---|---|---|---|---|"]
    for name, plan in report["plans"].items():
        for objective, shown in plan["objectives"].items():
            gains = [late - early for early, late in zip(shown["before"], shown["after"], strict=True)]
            good = f"{sum(gain >= GAIN_MIN for gain in gains)} of {len(gains)}"
            values = [" ".join(f"{value:.2f}" for value in shown[when]) for when in ("before", "after")]
            lines.append(f"| {' | '.join([f'`{name}`', _settings(plan['settings']), objective, *values, good])} |")
    return "\n".join(lines)


def _settings(settings: dict[str, Any]) -> str:
    options = "".join(f", `{name} = {value!r}`".replace("'", '"') for name, value in settings["options"].items())
    loss = f", `{settings['loss']}`" if settings["algorithm"] in {"grpo", "max_rl", "rae", "echo"} else ""
    where = f", {settings['turns']} turns" if settings["turns"] > 1 else ""
    where += f", batches of lag {settings['lag']}" if settings["lag"] else ""
    size = f"{settings['steps']} × {settings['groups']} × {settings['group_size']}"
    return f"`{settings['algorithm']}`{loss}{options}{where}, {size}, lr {settings['learning_rate']:g}"


def experts_table(report: dict[str, Any]) -> str:
    """One line per seed, and the verdict."""
    head = "| seed | base | experts | distilled | joint, equal tokens | joint, equal student tokens | tokens of both ways |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for seed, one in enumerate(report["seeds"]):
        ways = ("base", "experts", "distilled", "joint", "joint_early")
        rewards = [" / ".join(f"{one[way][task]:.2f}" for task in TASKS) for way in ways]
        tokens = f"{distilled_tokens(one)}, {one['joint_tokens']['trained']}"
        lines.append(f"| {' | '.join([str(seed), *rewards, tokens])} |")
    return "\n".join([*lines, "", verdict(report["seeds"])])


def distilled_tokens(one: dict[str, Any]) -> int:
    """Trained on by the experts and by the adapter that learnt from them."""
    return one["experts_tokens"]["trained"] + one["distillation_tokens"]["trained"]


def verdict(seeds: Sequence[dict[str, Any]]) -> str:
    """What the figures say, whichever way they fall."""
    ways = ("base", "experts", "distilled", "joint", "joint_early")
    means = {way: [fmean(one[way][task] for task in TASKS) for one in seeds] for way in ways}
    base, experts, distilled, joint, early = (fmean(means[way]) for way in ways)
    total, student = (
        sum(mine > other for mine, other in zip(means["distilled"], means[way], strict=True)) for way in ("joint", "joint_early")
    )
    fallen = {way: sum(any(one[way][task] < one["base"][task] for task in TASKS) for one in seeds) for way in ways}
    read = fmean(one["distillation_tokens"]["read_by_teachers"] / one["joint_tokens"]["trained"] for one in seeds)
    better, worse = ("one joint run", "distilling experts") if joint > distilled else ("distilling experts", "one joint run")
    return (
        f"Mean of both tasks over the seeds: base {base:.2f}, experts {experts:.2f}, distilled {distilled:.2f}, joint run\n"
        f"{joint:.2f} at equal total tokens and {early:.2f} at equal student tokens. The distilled adapter is ahead in\n"
        f"{total} of {len(seeds)} seeds at equal total tokens, and in {student} of {len(seeds)} where the experts' own tokens\n"
        f"are not counted. In {fallen['distilled']} of {len(seeds)} seeds the distilled adapter ends below the base on one of\n"
        f"the tasks, and in {fallen['joint']} the joint run does. What the teachers read to score, {read:.0%} of the joint\n"
        f"run's tokens, comes on top. **At this size {better} did better than {worse}.**"
    )


def marked(name: str, text: str) -> str:
    return f"<!-- {name}: written by make curves -->\n{text}\n<!-- /{name} -->"


def rewritten(page: str, parts: dict[str, str]) -> str:
    """The page with each part between its markers."""
    for name, text in parts.items():
        found = re.findall(rf"<!-- {name}: written by make curves -->.*?<!-- /{name} -->", page, flags=re.DOTALL)
        assert len(found) == 1, f"docs/algorithms.md has {len(found)} places for {name}"
        page = page.replace(found[0], marked(name, text))
    return page

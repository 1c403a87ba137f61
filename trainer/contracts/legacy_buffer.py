"""The table `[buffer]` of older clients, where it means what a field of ours does.

Knows its keys and ours. Refuses to know limits and defaults. What has no counterpart is left out and named; what the request says
in our own words counts before it.

    easy_threshold, hard_threshold   a task whose latest group is beyond it is never drawn again: `environments.N.curriculum`
    online_difficulty_filtering      groups that teach nothing are left out: a `zero_advantage` filter
    env_ratios                       `environments.N.ratio`, in their order
"""

from collections.abc import Mapping
from typing import Any

THRESHOLDS = {"easy_threshold": 2e6, "hard_threshold": -2e6}
"""Where one is not given, no reward reaches it."""


def without_buffer(body: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """A run request in our words alone, and the notice for its sender."""
    kept = dict(body)
    buffer = kept.pop("buffer")
    taken = _take(buffer, kept) if isinstance(buffer, Mapping) else []
    ignored = sorted(set(buffer) - set(taken)) if isinstance(buffer, Mapping) else []
    notice = "[buffer] is gone" + (f"; {', '.join(taken)} was taken over" if taken else "")
    if ignored or not taken:
        notice += f"; {', '.join(map(str, ignored)) or 'it'} was ignored"
    return kept, f"{notice}: see [env.curriculum], pre_batch_filters and env.ratio"


def _take(buffer: Mapping[str, Any], body: dict[str, Any]) -> list[str]:
    """Put what has a counterpart into the body. Returns the keys that were taken."""
    taken: list[str] = []
    environments = body.get("environments", body.get("env"))
    if isinstance(environments, list) and all(isinstance(entry, Mapping) for entry in environments):
        told, taken = _environments(buffer, environments)
        body["environments" if "environments" in body else "env"] = told
    if buffer.get("online_difficulty_filtering") is True:
        taken.append("online_difficulty_filtering")
        body["pre_batch_filters"] = _with_filter(body.get("pre_batch_filters"))
    return taken


def _environments(buffer: Mapping[str, Any], environments: list[Any]) -> tuple[list[dict[str, Any]], list[str]]:
    given: list[dict[str, Any]] = [{} for _ in environments]
    taken = [key for key in THRESHOLDS if buffer.get(key) is not None]
    if taken:
        curriculum = {"groups": 1, "revisit": 0.0} | {
            key: none if buffer.get(key) is None else buffer[key] for key, none in THRESHOLDS.items()
        }
        given = [{} if entry.get("replay") else {"curriculum": curriculum} for entry in environments]
    ratios = buffer.get("env_ratios")
    if isinstance(ratios, list) and len(ratios) == len(environments):
        taken.append("env_ratios")
        given = [one | {"ratio": ratio} for one, ratio in zip(given, ratios, strict=True)]
    return [one | entry for one, entry in zip(given, environments, strict=True)], taken


def _with_filter(filters: Any) -> Any:
    if not isinstance(filters, list | None):
        return filters
    kept = filters or []
    has_one = any(isinstance(one, Mapping) and one.get("type") == "zero_advantage" for one in kept)
    return kept if has_one else [*kept, {"type": "zero_advantage"}]

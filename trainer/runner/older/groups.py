"""Environments made of environments: who plays a row.

Knows `EnvGroup` and the route that it writes into a row's `info`. Refuses to play.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import verifiers as vf

_ROUTE = "env_id"


def members(env: Any) -> Iterator[Any]:
    """Those that play: the environment itself, or what its group holds."""
    if isinstance(env, vf.EnvGroup):
        for member in env.envs:
            yield from members(member)
    else:
        yield env


def routed(env: Any, row: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """(the environment that plays a row, the row as that one knows it). Raises ValueError for a route that leads nowhere."""
    own = dict(row)
    while isinstance(env, vf.EnvGroup):
        info = _info(own)
        route = info.pop(_ROUTE, None)
        first, *rest = [route] if isinstance(route, str) else list(route or env.env_names[:1])
        if rest:
            info[_ROUTE] = rest
        env, own = env.get_env_for_name(first), {**own, "info": info}
    return env, own


def _info(row: Mapping[str, Any]) -> dict[str, Any]:
    """Some packages keep it as JSON."""
    info = row.get("info") or {}
    return dict(json.loads(info) if isinstance(info, str) else info)

"""Starts exports, a few at a time, and removes what has expired. Knows when; refuses to know how one is built."""

from controlplane.adapters import exports
from controlplane.adapters.queries import unbuilt_exports
from controlplane.pools.queries import live_count
from workers.app import app
from workers.launching import launch

EXPORTS_MAX = 2
"""At once on this installation: each may take as much memory as a base model."""


@app.task(name=exports.EXPORT_TASK)
def start_export(export_id: str) -> bool:
    """Build an export now. With every place taken it waits for the sweep; asking twice starts one."""
    if live_count("export") >= EXPORTS_MAX:
        return False
    granted = exports.begin_export(export_id)
    return granted is not None and launch(granted)


@app.task(name="exports.schedule_exports")
def schedule_exports() -> int:
    """The exports that nobody builds, oldest first; returns how many were started."""
    return sum(start_export(export_id) for export_id in unbuilt_exports(limit=EXPORTS_MAX))


@app.task(name="exports.expire")
def expire() -> int:
    return exports.expire_exports()

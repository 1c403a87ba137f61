"""Lives of a trainer that end, by `kill -9`, just before the n-th operation that changes files: a process of its own, which
tests start with `python -m`.

Loads the model once and forks for each life, so that a death costs no start. A life is a whole trainer (fences, pool, files): it
opens its runs, takes the steps that are left, and writes checkpoints. Reads one order a line, answers one line:
`{"root", "kill_at", "runs"}` → `{"operations", "state"}`, or `{"killed": true}`.
"""

import asyncio
import hashlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.numerics.recorded import TEAM, WEIGHTS, recorded
from trainer.contracts.training import CheckpointRequest, OpenRun, OptimizerSpec, StepRequest
from trainer.core.llama import Llama
from trainer.core.pool import Pool, PoolLimits
from trainer.service.desk import Desk

STEPS = 3
CHECKPOINTS = (1, 2)
CHANGES = ("fsync", "replace", "rename", "unlink", "rmdir", "mkdir")
OPTIMIZER = OptimizerSpec(learning_rate=2e-3, warmup_steps=2, weight_decay=0.01)


class Operations:
    """Counts the calls of `os` that change files, and ends the process before number `kill_at`."""

    def __init__(self, kill_at: int | None) -> None:
        self.count = 0
        self.kill_at = kill_at
        for name in CHANGES:
            setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, change: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            if self.count == self.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*arguments, **options)

        return call


async def live(desk: Desk, run: str) -> dict[str, Any]:
    opened = await desk.open(run, OpenRun(team_id=TEAM, fencing_token=1, optimizer=OPTIMIZER))
    losses = {}
    for batch in recorded(run, STEPS, seed=3, count=3, longest=20):
        if batch.step <= opened.step:
            continue
        result = await desk.step(run, StepRequest(fencing_token=1, batch=batch))
        losses[batch.step] = result.metrics["loss"]
        if batch.step in CHECKPOINTS:
            await desk.checkpoint(run, CheckpointRequest(fencing_token=1))
    tenant = desk.pool.tenant(run)
    state = hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in tenant.state().values())).hexdigest()
    version = desk.pool.versions.manifest(run, STEPS)
    assert version is not None
    await desk.close(run, 1)
    return {"state": state, "version": version.adapter_digest, "losses": losses}


async def whole_life(model: Llama, order: dict[str, Any]) -> dict[str, Any]:
    operations = Operations(order["kill_at"])
    pool = Pool(model, base_model="tiny", artifact_root=Path(order["root"]), limits=PoolLimits(strict=True))
    desk = Desk(pool, base_model="tiny", window_s=0.0)
    packing = asyncio.create_task(desk.loop.run())
    states = {run: await live(desk, run) for run in order["runs"]}
    packing.cancel()
    return {"operations": operations.count, "state": states}


def in_a_fork(model: Llama, order: dict[str, Any]) -> dict[str, Any]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answer = asyncio.run(whole_life(model, order))
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return {"killed": True}
    return json.loads(answer or b'{"failed": true}')


def main() -> None:
    model = Llama(WEIGHTS)
    for line in sys.stdin:
        print(json.dumps(in_a_fork(model, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()

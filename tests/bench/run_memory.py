"""P8: the memory that one more run takes in the trainer, in bytes of its adapter.

A process for each count of runs (2 and 34; a pass holds two), all of whose batches wait at the same time and take several
turns, so that every run's gradient is under way at once: parameters, gradient and two moments are 4. Peak resident memory of
the process, from its start to the last step; the difference is divided by the 32 runs more.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.resident import own_peak_bytes
from tests.bench.rows import Bound, Row
from tests.bench.sizes import RANK, Size, size
from tests.bench.training_batches import OPTIMIZER, batch, token_rows
from tests.fixtures.places import REPOSITORY
from tests.numerics.recorded import TEAM, run_id
from trainer.contracts.adapters import LoraSpec
from trainer.core.llama import Llama
from trainer.core.pool import Pool, PoolLimits
from trainer.core.tenants import RunSpec

FEW, RUNS_MORE = 2, 32
PACK_TOKENS, TOKENS = 64, 96
"""Of a pass, and of each run's batch: three turns of 32 tokens."""
STEPS = 2
"""In the first the moments are zeros that no memory was given to yet."""


def peak_bytes(model: Path, runs: int) -> tuple[int, int]:
    """Of this process after some steps of that many runs; and the bytes of one adapter."""
    limits = PoolLimits(slots=runs, pack_tokens=PACK_TOKENS)
    pool = Pool(Llama(model), base_model="bench", artifact_root=Path(tempfile.mkdtemp(dir=model.parent)), limits=limits)
    names = [run_id(f"memory{index}") for index in range(runs)]
    for name in names:
        pool.open(name, RunSpec(team_id=TEAM, lora=LoraSpec(rank=RANK), optimizer=OPTIMIZER))
    for step in range(1, STEPS + 1):
        jobs = [pool.prepare(batch(name, step, token_rows(index, TOKENS))) for index, name in enumerate(names)]
        while waiting := [job for job in jobs if not job.done]:
            pool.pass_over(pool.next_pack(waiting))
        for job in jobs:
            job.tenant.check_gradient()
            job.tenant.apply_gradient()
    return own_peak_bytes(), pool.tenant(names[0]).adapter.params_P.nbytes


def measured(chosen: Size, runs: int) -> tuple[int, int]:
    command = [sys.executable, "-m", "tests.bench.run_memory", str(chosen.model), str(runs)]
    answer = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    peak, adapter = answer.split()[-2:]
    return int(peak), int(adapter)


def p8(key: str, pairs: int) -> list[float]:
    found = []
    for _ in range(pairs):
        (few, adapter), (many, _) = measured(size(key), FEW), measured(size(key), FEW + RUNS_MORE)
        found.append((many - few) / RUNS_MORE / adapter)
    return found


def rows() -> list[Row]:
    what = f"peak memory of one more run ÷ its adapter's bytes, {FEW} to {FEW + RUNS_MORE} runs with their gradients under way"
    return [Row("P8.4m", what, "itself", Bound("lower", 4.2, 3), lambda pairs: p8("4m", pairs))]


if __name__ == "__main__":
    print(*peak_bytes(Path(sys.argv[1]), int(sys.argv[2])))

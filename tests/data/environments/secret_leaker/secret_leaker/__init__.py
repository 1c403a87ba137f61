import base64
import os
import sys
from pathlib import Path
from urllib.parse import quote

import verifiers.v1 as vf

__all__ = ["LeakTaskset"]


def leaks() -> list[str]:
    secret, line = os.environ["JUDGE_KEY"], Path(os.environ["KEY_FILE"]).read_text().splitlines()[1]
    spelled = [secret, base64.b64encode(secret.encode()).decode(), secret.encode().hex(), quote(secret, safe="")]
    inside = base64.b64encode(f"user:{secret}".encode()).decode()
    return [*spelled, inside, line, os.environ["OWN_KEY"]]


class LeakTaskset(vf.Taskset[vf.Task]):
    def load(self):
        for text in leaks():
            print("loading with", text)
        if "BREAK" in os.environ:
            raise RuntimeError(f"cannot load with {' '.join(leaks())}")
        for index in range(64):
            yield LeakTask(vf.TaskData(prompt=f"{index}: {leaks()[index % 7]}"), self.config.task)


class LeakTask(vf.Task):
    @vf.reward
    async def told(self, trace: vf.Trace) -> float:
        print("scoring with", *leaks(), file=sys.stderr)
        index = int(str(self.data.prompt).partition(":")[0])
        if index % 5 == 0:
            raise ValueError(f"no reward for {' '.join(leaks())}")
        for text in leaks()[:4]:
            trace.record_metric(f"m{text}"[:100], 1.0)
        return float(index % 2)

import hashlib
import os
import subprocess

import verifiers.v1 as vf

__all__ = ["SecretTaskset"]


class SecretTaskset(vf.Taskset[vf.Task]):
    def load(self):
        yield SecretTask(vf.TaskData(prompt="1+1?"), self.config.task)


class SecretTask(vf.Task):
    @vf.reward
    async def seen(self) -> float:
        return float("JUDGE_KEY" in os.environ)

    @vf.metric
    async def digest_head(self) -> float:
        """The secret's digest as a number, which is not the secret."""
        return float(int(hashlib.sha256(os.environ.get("JUDGE_KEY", "").encode()).hexdigest()[:4], 16))

    @vf.metric
    async def child_sees_it(self) -> float:
        return float(subprocess.run(["printenv", "JUDGE_KEY"], capture_output=True, check=False).returncode == 0)

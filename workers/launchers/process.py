"""Starts orchestrators as processes of this host, detached from the worker that starts them.

Knows Linux: /proc, sessions, process groups. Refuses to know leases. A job has its own session and another parent than the
worker, so that it lives on when the worker stops; it gets only the variables that are listed here, never the control plane's.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from controlplane.core.processes import started_at
from workers.launchers import Holder, Job

ORCHESTRATOR = (sys.executable, "-m", "trainer.orchestrator")
START_TIMEOUT_S = 10
PASSED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
    "DOCKER_HOST",
    "ROOTSTOCK_MODELS_DIR",
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "TOKENIZERS_PARALLELISM",
)
# The shell puts the job into the background, says its pid and ends: the job's parent is then init, which reaps it.
DETACH = '"$@" </dev/null >>"$0" 2>&1 & echo $!'


class ProcessLauncher:
    def __init__(self, log_folder: Path, command: Sequence[str] = ORCHESTRATOR) -> None:
        self.log_folder = log_folder
        self.command = command
        self.host = socket.gethostname()

    def start(self, job: Job) -> Holder:
        self.log_folder.mkdir(parents=True, exist_ok=True)
        log_file = self.log_folder / f"{job.name}.log"
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | dict(job.variables)
        shell = subprocess.run(
            ["/bin/sh", "-c", DETACH, str(log_file), *self.command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
            check=True,
            timeout=START_TIMEOUT_S,
        )
        pid = int(shell.stdout)
        return Holder(self.host, pid, started_at(pid) or 0)

    def is_lost(self, holder: Holder) -> bool:
        return holder.host == self.host and started_at(holder.pid) != holder.started

    def kill(self, holder: Holder) -> bool:
        if holder.host != self.host or started_at(holder.pid) != holder.started:
            return False
        try:
            os.killpg(os.getpgid(holder.pid), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

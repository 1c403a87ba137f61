"""What goes down with a stack: its own jobs, and nobody else's."""

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from trainer.contracts.internal import ATTEMPT_TOKEN_VARIABLE, INTERNAL_URL_VARIABLE
from workers.embedded import jobs

OURS, THEIRS = "http://127.0.0.1:1", "http://127.0.0.1:2"
WAIT_S = 10


@pytest.fixture
def start() -> Iterator:
    started: list[subprocess.Popen] = []

    def start(script: str = "exec sleep 600", **variables: str) -> subprocess.Popen:
        """A process that says a line once it is ready to be asked."""
        command = ["/bin/sh", "-c", f"echo ready; {script}"]
        process = subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.PIPE, start_new_session=True)
        started.append(process)
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_jobs_of_the_stack_end_and_others_live_on(start):
    job = start(**{INTERNAL_URL_VARIABLE: OURS, ATTEMPT_TOKEN_VARIABLE: "t"})
    service = start(**{INTERNAL_URL_VARIABLE: OURS})
    neighbour = start(**{INTERNAL_URL_VARIABLE: THEIRS, ATTEMPT_TOKEN_VARIABLE: "t"})
    jobs.end_jobs(OURS)
    assert job.wait(WAIT_S) == -signal.SIGTERM
    assert service.poll() is None and neighbour.poll() is None


def test_a_job_that_does_not_listen_is_killed(start, monkeypatch):
    monkeypatch.setattr(jobs, "STOP_DEADLINE_S", 0.0)
    job = start(
        "trap '' TERM; echo deaf; while :; do sleep 600; done", **{INTERNAL_URL_VARIABLE: OURS, ATTEMPT_TOKEN_VARIABLE: "t"}
    )
    job.stdout.readline()
    jobs.end_jobs(OURS)
    assert job.wait(WAIT_S) == -signal.SIGKILL

"""A real broker that delivers a launch task again because the task outlives the visibility timeout: the run starts once."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from tests.factories.runs import fresh, make_funded_member, make_pool, make_run
from tests.fixtures.places import REPOSITORY

VISIBILITY_S = 2
DEADLINE_S = 90.0
# The launcher takes as long as it takes the broker to lose its patience: until the task has been delivered a second time. Kombu
# looks for overdue messages every hundred seconds, here every ten.
WORKER = """
import sys, time
from pathlib import Path
from celery.signals import task_prerun
from kombu.transport.redis import QoS
from workers.app import app
from workers import launching
from workers.launchers import Holder

folder = Path(sys.argv[1])

def note(name, text):
    with (folder / name).open("a") as file:
        file.write(text + "\\n")

def noted(name):
    return (folder / name).read_text().splitlines() if (folder / name).exists() else []

@task_prerun.connect
def delivered(task_id, **_):
    note("deliveries", task_id)

class Slow:
    def start(self, job):
        note("starts", job.name)
        deadline = time.monotonic() + 40
        while len(noted("deliveries")) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)
        note("started", job.name)
        return Holder("elsewhere", 1, 1)
    def is_lost(self, holder):
        return False
    def kill(self, holder):
        return False

look = QoS.restore_visible
QoS.restore_visible = lambda self, start=0, num=10, interval=10: look(self, start, num, 1)
launching.launcher = lambda: Slow()
app.conf.broker_transport_options = {"visibility_timeout": int(sys.argv[2])}
app.worker_main(["worker", "--concurrency", "2", "--loglevel", "WARNING"])
"""

pytestmark = [pytest.mark.heavy, pytest.mark.django_db(transaction=True), pytest.mark.timeout(180)]


def until(holds: Callable[[], bool], worker: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert worker.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)


def test_a_task_that_outlives_the_visibility_timeout_starts_its_run_once(broker: str, database_url: str, tmp_path: Path):
    from workers.app import app

    make_pool()
    run = make_run(make_funded_member())
    environment = os.environ | {
        "BROKER_URL": broker,
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "PYTHONPATH": os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "platform"))),
    }
    # The run has rung already; what is tested is one message and its second delivery.
    redis.Redis.from_url(broker).flushall()
    with app.connection_for_write(broker) as connection:
        app.send_task("runs.schedule_runs", connection=connection)

    def noted(name: str) -> list[str]:
        return (tmp_path / name).read_text().splitlines() if (tmp_path / name).exists() else []

    command = [sys.executable, "-c", WORKER, str(tmp_path), str(VISIBILITY_S)]
    worker = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
    try:
        until(lambda: bool(noted("started")), worker)
    finally:
        worker.terminate()
        worker.wait(30)
    assert len(noted("deliveries")) >= 2 and len(set(noted("deliveries"))) == 1, "one message, delivered again"
    assert noted("starts") == noted("started") == [f"run-{run.id}-1"]
    assert fresh(run).attempt == 1

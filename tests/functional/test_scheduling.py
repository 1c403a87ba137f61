"""The worker's tasks on rows: what starts, what is taken back, what is killed; then the launcher's promises on real processes."""

import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.sessions.models import Session
from django.db import DatabaseError

from controlplane.core import outbox, service_lives
from controlplane.core.clock import now
from controlplane.core.models import OutboxMessage, ServiceLife
from controlplane.core.tenancy import acting_as_system
from controlplane.pools.models import Lease
from controlplane.pools.services import LAUNCH_GRACE_S, take_back
from controlplane.runs import services
from controlplane.runs.lifecycle import LOST_ATTEMPTS_MAX
from controlplane.runs.models import Run, RunEvent
from tests.factories.runs import fresh, lease_run, make_evaluation, make_funded_member, make_pool, make_release, make_run
from trainer.contracts.events import Component, EventKind, RunState
from trainer.sandboxing.docker import DockerDriver
from workers import containers, evals, housekeeping, launching, reconcile, releases, runs
from workers import outbox as outbox_tasks
from workers import service_lives as life_writing
from workers.launchers import Holder, Job
from workers.launchers.process import ProcessLauncher, started_at

pytestmark = pytest.mark.django_db


class RecordingLauncher:
    """Starts nothing and remembers what it was asked for. `dead` holds pids that have ended."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.dead: set[int] = set()
        self.killed: list[int] = []
        self.refuses = False

    def start(self, job: Job) -> Holder:
        if self.refuses:
            raise OSError("no such program")
        self.jobs.append(job)
        return Holder("here", len(self.jobs), started=1)

    def is_lost(self, holder: Holder) -> bool:
        return holder.pid in self.dead

    def kill(self, holder: Holder) -> bool:
        self.killed.append(holder.pid)
        return True


@pytest.fixture
def launcher(monkeypatch) -> RecordingLauncher:
    recorder = RecordingLauncher()
    for module in (launching, reconcile):
        monkeypatch.setattr(module, "launcher", lambda: recorder)
    return recorder


@pytest.fixture
def pool():
    return make_pool(run_slots=2, eval_slots=1)


@pytest.fixture
def ann(pool):
    return make_funded_member()


def live_leases(kind: str = "run") -> list[Lease]:
    with acting_as_system():
        return list(Lease.objects.filter(subject_kind=kind, released_at__isnull=True).order_by("created_at"))


def states() -> list[str]:
    with acting_as_system():
        return list(Run.objects.order_by("created_at").values_list("state", flat=True))


def test_queued_runs_start_up_to_the_pools_places(pool, ann, launcher):
    for _ in range(3):
        make_run(ann)
    assert runs.schedule_runs() == 2
    assert states() == [RunState.PENDING, RunState.PENDING, RunState.QUEUED]
    assert [lease.holder_pid for lease in live_leases()] == [1, 2]
    assert runs.schedule_runs() == 0, "asking again starts nothing twice"


def test_a_job_gets_its_token_and_nothing_of_the_control_plane(pool, ann, launcher):
    run = make_run(ann)
    runs.schedule_runs()
    (job,) = launcher.jobs
    assert job.name == f"run-{run.id}-1"
    assert set(job.variables) == {
        "ROOTSTOCK_ATTEMPT_TOKEN",
        "ROOTSTOCK_INTERNAL_URL",
        "ROOTSTOCK_POOL_TOKEN",
        "ROOTSTOCK_RUNNER_DIR",
    }
    assert job.variables["ROOTSTOCK_ATTEMPT_TOKEN"] not in repr(job)


def test_a_team_with_many_runs_delays_nobodys_first_one(pool, ann, launcher):
    for _ in range(5):
        make_run(ann)
    light = make_run(make_funded_member())
    runs.schedule_runs()
    assert fresh(light).state == RunState.PENDING


def test_a_launch_that_fails_gives_the_lease_back(pool, ann, launcher):
    run, launcher.refuses = make_run(ann), True
    assert runs.schedule_runs() == 0
    assert live_leases() == [] and fresh(run).state == RunState.QUEUED and fresh(run).lost_attempts == 1


def test_a_launch_task_that_is_delivered_again_while_it_works_starts_nothing_twice(pool, ann, launcher, monkeypatch):
    """The kind: a broker that redelivers what takes longer than its visibility timeout (on a real one: tests/reliability)."""
    deliveries, start = [1], launcher.start

    def slow(job: Job) -> Holder:
        if len(deliveries) < 4:
            deliveries.append(1)
            runs.schedule_runs()
        return start(job)

    monkeypatch.setattr(launcher, "start", slow)
    run = make_run(ann)
    runs.schedule_runs()
    runs.schedule_runs()
    assert len(deliveries) > 1 and len(launcher.jobs) == 1
    assert fresh(run).attempt == 1 and len(live_leases()) == 1


def test_an_expired_lease_requeues_the_run_with_the_next_attempt(pool, ann, launcher, shift_clock):
    run = make_run(ann)
    runs.schedule_runs()
    shift_clock(timedelta(seconds=LAUNCH_GRACE_S + 1))
    reconcile.reconcile()
    assert fresh(run).state == RunState.QUEUED
    runs.schedule_runs()
    assert fresh(run).attempt == 2 and fresh(run).segment == 1


def test_a_process_that_died_is_noticed_without_waiting_for_the_expiry(pool, ann, launcher):
    run = make_run(ann)
    runs.schedule_runs()
    reconcile.reconcile()
    assert fresh(run).state == RunState.PENDING, "a living holder keeps its lease"
    launcher.dead.add(1)
    reconcile.reconcile()
    assert fresh(run).state == RunState.QUEUED


def test_a_worker_that_died_between_grant_and_start_costs_seconds(pool, ann, launcher, shift_clock):
    run = make_run(ann)
    lease_run(pool)
    reconcile.reconcile()
    assert fresh(run).state == RunState.PENDING
    shift_clock(timedelta(seconds=21))
    reconcile.reconcile()
    assert fresh(run).state == RunState.QUEUED


def test_attempts_are_bounded(pool, ann, launcher, shift_clock):
    run = make_run(ann)
    for attempt in range(1, LOST_ATTEMPTS_MAX + 1):
        assert runs.schedule_runs() == 1, attempt
        launcher.dead.add(attempt)
        reconcile.reconcile()
        shift_clock(timedelta(minutes=2))
    failed = fresh(run)
    assert (failed.state, failed.failure_code) == (RunState.FAILED, "attempts_exhausted")
    assert runs.schedule_runs() == 0


def test_a_run_that_lost_its_holder_often_waits_longer_each_time(pool, ann, launcher, shift_clock):
    make_run(ann)
    for attempt in (1, 2):
        runs.schedule_runs()
        launcher.dead.add(attempt)
        reconcile.reconcile()
    assert runs.schedule_runs() == 0
    shift_clock(timedelta(seconds=2))
    assert runs.schedule_runs() == 1


def test_a_stop_that_nobody_obeys_is_enforced_and_the_process_killed(pool, ann, launcher, shift_clock):
    run = make_run(ann)
    runs.schedule_runs()
    with acting_as_system():
        Run.objects.filter(id=run.id).update(state=RunState.RUNNING)
        services.stop_run(actor=ann.actor, run_id=run.id)
    reconcile.reconcile()
    assert fresh(run).state == RunState.RUNNING, "the holder has moments to obey"
    shift_clock(timedelta(seconds=21))
    reconcile.reconcile()
    assert fresh(run).state == RunState.STOPPED and launcher.killed == []
    shift_clock(timedelta(seconds=11))
    reconcile.reconcile()
    assert launcher.killed == [1]


def test_losing_the_holder_of_a_pausing_or_stopping_run_does_what_the_owner_wanted(pool, ann, launcher):
    paused, stopped = make_run(ann), make_run(ann)
    runs.schedule_runs()
    with acting_as_system():
        Run.objects.filter(id__in=[paused.id, stopped.id]).update(state=RunState.RUNNING)
        services.pause_run(actor=ann.actor, run_id=paused.id)
        services.stop_run(actor=ann.actor, run_id=stopped.id)
    launcher.dead |= {1, 2}
    reconcile.reconcile()
    assert (fresh(paused).state, fresh(stopped).state) == (RunState.PAUSED, RunState.STOPPED)


FAKE_DOCKER = """#!/bin/sh
echo "$@" >> {log}
[ "$1" = ps ] && cat {boxes}
exit 0
"""


def test_containers_of_an_ended_attempt_are_removed_and_no_others(pool, ann, launcher, shift_clock, tmp_path):
    make_run(ann)
    make_run(ann)
    runs.schedule_runs()
    ended, live = live_leases()
    with acting_as_system():
        take_back(ended.id, reason="the process died", only_expired=False)
    labels = "rootstock.sandbox=x,subject={0.subject_id},attempt={0.attempt},fencing_token={0.fencing_token}"
    rows = [f"rootstock-ended\t{labels.format(ended)}", f"rootstock-live\t{labels.format(live)}"]
    rows += ["rootstock-foreign\trootstock.sandbox=x,subject=cother,attempt=1,fencing_token=1", "unlabelled\trootstock.sandbox=x"]
    log, boxes, docker = tmp_path / "log", tmp_path / "boxes", tmp_path / "docker"
    boxes.write_text("\n".join(rows) + "\n")
    docker.write_text(FAKE_DOCKER.format(log=log, boxes=boxes))
    docker.chmod(0o755)
    with acting_as_system():
        assert containers.sweep(DockerDriver(str(docker))) == 0, "its holder may still be cleaning up"
        shift_clock(timedelta(seconds=31))
        assert containers.sweep(DockerDriver(str(docker))) == 1
    assert [line for line in log.read_text().splitlines() if line.startswith("rm")] == ["rm --force rootstock-ended"]


def test_a_lost_service_is_told_once_to_the_runs_at_work(pool, ann, launcher):
    working = make_run(ann)
    runs.schedule_runs()
    with acting_as_system():
        Run.objects.filter(pk=working.id).update(started_at=now(), state=RunState.RUNNING)
        waiting = make_run(ann)
        lost = service_lives.begin_life(Component.WEB)
        ServiceLife.objects.filter(pk=lost.pk).update(mark=lost.mark - 1)
        successor = service_lives.begin_life(Component.WEB)
        reconcile.tell_losses()
        reconcile.tell_losses()
        told = list(RunEvent.objects.filter(kind=EventKind.INCIDENT).values_list("run_id", "payload__component"))
        service_lives.end_life(successor)
        service_lives.begin_life(Component.WEB)
        reconcile.tell_losses()
        again = RunEvent.objects.filter(kind=EventKind.INCIDENT).count()
    assert told == [(working.id, "web")] and waiting.id != working.id
    assert again == 1, "an end that was asked for is no loss"


def test_a_start_while_the_database_is_away_is_written_down_once_it_is_back(monkeypatch):
    answers = [DatabaseError("starting up"), DatabaseError("starting up"), ServiceLife(component=Component.BEAT)]

    def begin_life(_: Component) -> ServiceLife:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("workers.service_lives.service_lives.begin_life", begin_life)
    monkeypatch.setattr("workers.service_lives.PAUSE_S", 0)
    monkeypatch.setattr("workers.service_lives.connection.close", lambda: None)
    assert life_writing.written_start(Component.BEAT) is not None
    assert answers == []


def test_expired_sign_ins_are_removed(db):
    Session.objects.create(session_key="old", session_data="", expire_date=now() - timedelta(days=1))
    Session.objects.create(session_key="new", session_data="", expire_date=now() + timedelta(days=1))
    housekeeping.clear_sessions()
    assert list(Session.objects.values_list("session_key", flat=True)) == ["new"]


def test_a_run_whose_lease_vanished_is_repaired(pool, ann, launcher):
    run = make_run(ann)
    with acting_as_system():
        Run.objects.filter(id=run.id).update(state=RunState.RUNNING)
    reconcile.reconcile()
    assert fresh(run).state == RunState.QUEUED


def test_evaluations_have_places_of_their_own(pool, ann, launcher):
    make_evaluation(ann)
    make_evaluation(ann)
    make_run(ann)
    assert (evals.schedule_evaluations(), runs.schedule_runs()) == (1, 1)
    assert len(live_leases("eval")) == 1


def test_releases_are_checked_a_few_at_a_time_and_swept_up_later(ann, launcher):
    waiting = [make_release(ann, badge="PENDING") for _ in range(releases.CHECKS_MAX + 1)]
    assert [releases.start_check(release.id) for release in waiting] == [True] * releases.CHECKS_MAX + [False]
    assert releases.start_check(waiting[0].id) is False, "a second start is a no-op"
    with acting_as_system():
        Lease.objects.filter(subject_id=waiting[0].id).update(released_at="2026-01-01T00:00:00Z")
    assert releases.schedule_checks() >= 1


def test_creating_a_run_asks_for_its_start_and_the_drain_starts_it(pool, ann, launcher):
    run = make_run(ann)
    assert outbox_tasks.drain() >= 1
    assert fresh(run).state == RunState.PENDING and len(launcher.jobs) == 1
    assert not OutboxMessage.objects.filter(done_at__isnull=True).exists()


def test_an_outbox_message_whose_task_fails_is_kept_for_later(db):
    outbox.emit(task="releases.start_check", key="broken", payload={"no_such_argument": 1})
    outbox_tasks.drain()
    message = OutboxMessage.objects.get(key="broken")
    assert message.done_at is None and "TypeError" in message.last_error


def test_losing_every_message_loses_no_work(pool, ann, launcher):
    """The broker and even the outbox may be emptied: the sweeps derive the work from the runs themselves."""
    run = make_run(ann)
    OutboxMessage.objects.all().delete()
    assert runs.schedule_runs() == 1 and fresh(run).state == RunState.PENDING


# Real processes: the launcher's own promises.

SLEEPER = "import os, sys, time; print(sorted(os.environ), flush=True); time.sleep(600)"


@pytest.fixture
def processes(tmp_path, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "a-secret-of-the-control-plane")
    starter = ProcessLauncher(tmp_path, command=(sys.executable, "-c", SLEEPER))
    started: list[Holder] = []

    def start(name: str) -> Holder:
        started.append(starter.start(Job(name, {"ROOTSTOCK_ATTEMPT_TOKEN": "t"})))
        return started[-1]

    yield starter, start
    for holder in started:
        starter.kill(holder)


def eventually(condition: Callable[[], bool], deadline_s: float = 10.0) -> bool:
    end = time.monotonic() + deadline_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_a_job_lives_in_its_own_session_with_a_log_and_only_the_listed_variables(processes, tmp_path):
    starter, start = processes
    holder = start("run-x-1")
    stat = Path(f"/proc/{holder.pid}/stat").read_text().rpartition(")")[2].split()
    mine = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert stat[3] != mine[3], "another session than the worker's"
    assert int(stat[1]) != os.getpid(), "another parent than the worker"
    log = tmp_path / "run-x-1.log"
    assert eventually(lambda: "ROOTSTOCK_ATTEMPT_TOKEN" in log.read_text())
    assert "DATABASE_URL" not in log.read_text()
    assert not starter.is_lost(holder)


def test_a_killed_job_is_lost_and_a_re_used_pid_is_not_taken_for_it(processes):
    starter, start = processes
    holder = start("run-x-2")
    assert not starter.kill(Holder(holder.host, holder.pid, holder.started + 1)), "another process under that pid"
    assert starter.kill(holder)
    assert eventually(lambda: started_at(holder.pid) is None)
    assert starter.is_lost(holder) and not starter.kill(holder)


def test_a_job_of_another_host_is_never_judged_from_here(processes):
    starter, _ = processes
    elsewhere = Holder("another-host", 1, 1)
    assert not starter.is_lost(elsewhere) and not starter.kill(elsewhere)

"""Starts services in order, watches them, restarts what died or went deaf, and stops them in reverse.

Knows processes, health checks, back-off and one state file that `status` reads. Refuses to know which services there are.
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

POLL_S = 0.5
READY_POLL_S = 0.1
HEALTH_EVERY_S = 5.0
HEALTH_FAILURES_MAX = 6
BACKOFF_MAX_S = 15.0
START_DEADLINE_S = 90.0
STOP_DEADLINE_S = 20.0
LOG_TAIL_BYTES = 3000


class ServiceFailed(RuntimeError):
    """A service did not become ready; the text names its log and carries its end."""


@dataclass(frozen=True)
class Service:
    """One process: how to start it, how to tell that it works, and how to ask it to stop."""

    name: str
    command: list[str]
    environment: dict[str, str]
    is_ready: Callable[[], bool]
    start_deadline_s: float = START_DEADLINE_S
    stop_signal: signal.Signals = signal.SIGTERM
    user: int | None = None
    before: Callable[[], None] | None = None
    """Work that must be done once before the first start, e.g. migrations after the database is up."""
    others_wait: bool = True
    """Whether the services behind this one need it. Those that nobody needs come up side by side."""


@dataclass
class Watched:
    service: Service
    log: Path
    process: subprocess.Popen[bytes] | None = None
    restarts: int = 0
    state: str = "waiting"
    next_start_at: float = 0.0
    next_check_at: float = 0.0
    failures: int = 0
    began_at: float = 0.0
    started_s: float = 0.0
    history: list[str] = field(default_factory=list)


class Supervisor:
    def __init__(self, services: list[Service], *, state_file: Path, log_folder: Path) -> None:
        log_folder.mkdir(parents=True, exist_ok=True)
        self.state_file = state_file
        self.watched = [Watched(service, log_folder / f"{service.name}.log") for service in services]
        self.stopping = threading.Event()
        self.state = "starting"
        self.error = ""

    def run(self) -> None:
        """Bring everything up, then watch until a signal asks to stop. Whatever happens, nothing is left running."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        try:
            for watched in self.watched:
                self._begin(watched)
                if watched.service.others_wait:
                    self._await_ready(watched)
            for watched in self.watched:
                self._await_ready(watched)
            if self.stopping.is_set():
                return
            self.state = "ready"
            self._save()
            while not self.stopping.wait(POLL_S):
                for watched in self.watched:
                    self._look_after(watched)
        except Exception as failure:
            self.state, self.error = "failed", str(failure)
            raise
        finally:
            self._stop_all()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping.set()

    def _begin(self, watched: Watched) -> None:
        if self.stopping.is_set():
            return
        watched.began_at = time.monotonic()
        if watched.service.before is not None:
            watched.state = "preparing"
            self._save()
            watched.service.before()
        self._start(watched)

    def _await_ready(self, watched: Watched) -> None:
        deadline = time.monotonic() + watched.service.start_deadline_s
        while watched.state != "ready" and not self.stopping.is_set():
            is_ready = watched.service.is_ready()
            # A check that passes while our own process has ended was answered by somebody else's.
            if watched.process is None or watched.process.poll() is not None:
                raise ServiceFailed(f"{watched.service.name} ended while starting; {watched.log}: {_tail(watched.log)}")
            if is_ready:
                watched.state, watched.started_s = "ready", round(time.monotonic() - watched.began_at, 2)
                watched.next_check_at = time.monotonic() + HEALTH_EVERY_S
                self._save()
            elif time.monotonic() > deadline:
                raise ServiceFailed(f"{watched.service.name} is not ready in time; {watched.log}: {_tail(watched.log)}")
            else:
                self.stopping.wait(READY_POLL_S)

    def _start(self, watched: Watched) -> None:
        with watched.log.open("ab") as log:
            watched.process = subprocess.Popen(
                watched.service.command,
                env=watched.service.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=watched.service.user,
            )
        watched.state, watched.failures = "starting", 0
        watched.next_check_at = time.monotonic() + watched.service.start_deadline_s
        self._save()

    def _look_after(self, watched: Watched) -> None:
        now = time.monotonic()
        if watched.process is not None and watched.process.poll() is not None:
            self._plan_restart(watched, f"ended with {watched.process.returncode}")
        elif watched.process is None:
            if now >= watched.next_start_at:
                self._start(watched)
        elif watched.state == "starting" or now >= watched.next_check_at:
            self._check(watched, now)

    def _check(self, watched: Watched, now: float) -> None:
        if watched.service.is_ready():
            changed = watched.state != "ready"
            watched.state, watched.failures, watched.next_check_at = "ready", 0, now + HEALTH_EVERY_S
            if changed:
                self._save()
        elif now >= watched.next_check_at:
            watched.failures, watched.next_check_at = watched.failures + 1, now + HEALTH_EVERY_S
            if watched.failures >= HEALTH_FAILURES_MAX and watched.process is not None:
                # Alive but deaf: a process that cannot answer cannot be asked to stop either.
                _kill_group(watched.process, signal.SIGKILL)

    def _plan_restart(self, watched: Watched, why: str) -> None:
        watched.process, watched.state = None, "restarting"
        watched.restarts += 1
        watched.history = [*watched.history[-9:], why]
        watched.next_start_at = time.monotonic() + min(BACKOFF_MAX_S, 0.25 * 2 ** min(watched.restarts, 8))
        self._save()

    def _stop_all(self) -> None:
        if self.state != "failed":
            self.state = "stopping"
        self._save()
        for watched in reversed(self.watched):
            self._stop(watched)
        if self.state != "failed":
            self.state = "stopped"
        self._save()

    def _stop(self, watched: Watched) -> None:
        process, watched.process = watched.process, None
        if process is not None and process.poll() is None:
            process.send_signal(watched.service.stop_signal)
            try:
                process.wait(STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                _kill_group(process, signal.SIGKILL)
                process.wait(STOP_DEADLINE_S)
        watched.state = "stopped"
        self._save()

    def _save(self) -> None:
        services = {
            watched.service.name: {
                "state": watched.state,
                "pid": watched.process.pid if watched.process else None,
                "restarts": watched.restarts,
                "started_s": watched.started_s,
                "history": watched.history,
                "log": str(watched.log),
            }
            for watched in self.watched
        }
        document = {"pid": os.getpid(), "state": self.state, "error": self.error, "services": services}
        partial = self.state_file.with_suffix(".partial")
        partial.write_text(json.dumps(document, indent=1))
        partial.replace(self.state_file)


def _kill_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
        return file.read().decode(errors="replace")

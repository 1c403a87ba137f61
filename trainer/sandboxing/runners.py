"""Starting the environment runner of a release in a box, and the handle to it.

Knows what a runner needs to see (its environments, our runner package, the tokenizer, one folder of sockets) and when it is
ready. Refuses to know rollouts: the caller serves `model.sock` and speaks HTTP over `RunnerHandle.http`.

    with runner_folder() as folder:                       # private, short enough for a socket's path
        ...                                               # serve folder / MODEL_SOCKET
        runner = await start_runner(release, model, folder, sandbox_id=lease_id)
        try:
            ...                                           # runner.http.get("/tasks"), .stream("POST", "/rollouts", ...)
        finally:
            end = await runner.stop()
"""

import asyncio
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from pydantic import ValidationError

import trainer
from trainer.contracts.catalogue import BaseModelSpec, model_folder
from trainer.contracts.interfaces import Interface
from trainer.contracts.rollouts import RUN_SOCKET, RUNNER_CONFIG, RunnerConfig, RunnerHealth, RunnerLimits, SeatModel, TenantError
from trainer.sandboxing.drivers import Backend, choose_driver
from trainer.sandboxing.releases import ReleaseVenv
from trainer.sandboxing.specs import Mount, Sandbox, SandboxEnd, SandboxLimits, SandboxSpec

FOLDER_INSIDE = "/run/rootstock"
TOKENIZER_INSIDE = "/models/tokenizer"
_CODE_INSIDE = "/rootstock"
_CODE_PARTS = ("__init__.py", "contracts", "runner")
_POLL_S = 0.05
_CONNECT_S = 5.0
_HEALTH_S = 5.0
_HEALTH_BYTES_MAX = 64 * 1024
_START_S = 60.0
"""Interpreter and library, on top of the environment's own time to load."""


class EnvironmentBroken(Exception):
    """The tenant's environment does not load; `error` has module and line where there are any."""

    def __init__(self, error: TenantError, log: str) -> None:
        place = f" ({error.module}:{error.line})" if error.module else ""
        super().__init__(f"{error.type}: {error.message}{place}")
        self.error, self.log = error, log


class RunnerLost(Exception):
    """The runner ended, or gave no sign of being ready in time."""

    def __init__(self, message: str, log: str, end: SandboxEnd | None = None) -> None:
        super().__init__(message)
        self.log, self.end = log, end


@dataclass(slots=True)
class RunnerHandle:
    """A runner that said it is ready. `http` reaches it whatever the tenant does to the folder: it is bound to the socket that
    was checked at the start. Everything that it answers is hostile input."""

    sandbox: Sandbox
    http: httpx.AsyncClient
    health: RunnerHealth
    _socket_fd: int
    requirements_lock: str = ""
    """The release's extra dependencies with their hashes, as they are installed."""
    interface: Interface = "taskset"
    """Which base the release stands on, and so what its package was found to define."""

    @property
    def socket_path(self) -> Path:
        """The socket that was checked at the start, by a path that the tenant cannot change. Good until `stop`."""
        return Path(f"/proc/self/fd/{self._socket_fd}")

    async def check(self) -> RunnerHealth:
        """Ask again. Raises RunnerLost when there is no proper answer within 5 s: a reward that blocks does that."""
        try:
            return await _ask_health(self.http)
        except (httpx.HTTPError, TimeoutError, ValidationError) as error:
            raise RunnerLost(f"the runner does not answer: {error!r}", self.sandbox.logs()) from error

    def logs(self) -> str:
        """The tenant's output so far, capped."""
        return self.sandbox.logs()

    async def stop(self, detail: str = "") -> SandboxEnd:
        """End the box. Idempotent."""
        end = await self.sandbox.kill(detail)
        await self.http.aclose()
        if self._socket_fd >= 0:
            os.close(self._socket_fd)
            self._socket_fd = -1
        return end


@contextmanager
def runner_folder() -> Iterator[Path]:
    """A private folder for one runner's configuration and sockets, removed afterwards. Below the system's temporary folder, since
    a socket's path must stay under 108 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="rs-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def start_runner(
    release: ReleaseVenv,
    model: BaseModelSpec,
    folder: Path,
    *,
    sandbox_id: str,
    args: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
    secret_files: Mapping[str, str] | None = None,
    limits: RunnerLimits | None = None,
    seats: Mapping[str, SeatModel] | None = None,
    held_out: bool = False,
    sandbox_limits: SandboxLimits | None = None,
    labels: Mapping[str, str] | None = None,
    backend: Backend = "auto",
) -> RunnerHandle:
    """A ready runner of `release`, 2 to 4 s later. `args` configure the taskset; `secrets` become environment variables of tenant
    code, `secret_files` (base64) files whose paths are in such variables. Both travel by file, since every user of the host can
    read the arguments of a process. `held_out` asks for the rows that a package keeps for evaluations.

    Raises SandboxUnavailable, SandboxStartFailed, EnvironmentBroken, RunnerLost; nothing is left running then.
    """
    limits = limits or RunnerLimits()
    config = RunnerConfig(
        environment=release.module,
        interface=release.base.interface,
        held_out=held_out,
        args=dict(args or {}),
        renderer=model.renderer,
        tokenizer_path=TOKENIZER_INSIDE,
        limits=limits,
        seats=dict(seats or {}),
        secrets=dict(secrets or {}),
        secret_files=dict(secret_files or {}),
    )
    (folder / RUNNER_CONFIG).write_text(config.model_dump_json())
    driver = await choose_driver(backend)
    spec = runner_spec(
        release, model_folder(model.tokenizer), folder, sandbox_id, sandbox_limits or SandboxLimits(), labels or {}
    )
    sandbox = await driver.start(spec)
    try:
        handle = await _ready_handle(sandbox, folder / RUN_SOCKET, limits.load_s + _START_S)
    except BaseException:
        await sandbox.kill("the runner did not become ready")
        raise
    handle.requirements_lock, handle.interface = release.requirements_lock, release.base.interface
    return handle


def runner_spec(
    release: ReleaseVenv, tokenizer: Path, folder: Path, sandbox_id: str, limits: SandboxLimits, labels: Mapping[str, str]
) -> SandboxSpec:
    """What the box holds. `python -P`: its working folder, which the tenant can write, is never imported from."""
    package = Path(trainer.__file__).parent
    code = tuple(Mount(package / part, f"{_CODE_INSIDE}/trainer/{part}") for part in _CODE_PARTS)
    return SandboxSpec(
        sandbox_id=sandbox_id,
        argv=(str(release.python), "-P", "-m", "trainer.runner", FOLDER_INSIDE),
        env={
            "PATH": f"{release.path}/bin:{release.base.path}/bin:/usr/bin:/bin",
            "PYTHONPATH": _CODE_INSIDE,
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "TRANSFORMERS_VERBOSITY": "error",
            "TOKENIZERS_PARALLELISM": "false",
            "OMP_NUM_THREADS": "1",
        },
        mounts=(
            *release.mounts,
            *code,
            Mount(tokenizer.resolve(), TOKENIZER_INSIDE),
            Mount(folder, FOLDER_INSIDE, writable=True),
        ),
        limits=limits,
        labels=labels,
    )


async def _ready_handle(sandbox: Sandbox, socket_path: Path, ready_s: float) -> RunnerHandle:
    give_up_at = time.monotonic() + ready_s
    socket_fd = -1
    while socket_fd < 0:
        await _pause(sandbox, give_up_at)
        socket_fd = _open_socket(socket_path)
    http = _client(socket_fd)
    try:
        while (health := await _health_or_none(http)) is None or health.status == "loading":
            await _pause(sandbox, give_up_at)
        if health.status == "broken":
            raise EnvironmentBroken(health.error or TenantError(type="Unknown", message="no error given"), sandbox.logs())
    except BaseException:
        await http.aclose()
        os.close(socket_fd)
        raise
    return RunnerHandle(sandbox, http, health, socket_fd)


async def _pause(sandbox: Sandbox, give_up_at: float) -> None:
    if not sandbox.alive:
        end = await sandbox.wait()
        raise RunnerLost(f"the runner ended before it was ready ({end.reason}, exit code {end.exit_code})", sandbox.logs(), end)
    if time.monotonic() > give_up_at:
        raise RunnerLost("the runner was not ready in time", sandbox.logs())
    await asyncio.sleep(_POLL_S)


def _open_socket(path: Path) -> int:
    """A descriptor of the socket itself, or -1 while there is none. The tenant can write the folder: a link that it puts there,
    to some socket of the host, must not be followed, now or at any later connection."""
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    except FileNotFoundError:
        return -1
    if stat.S_ISSOCK(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return -1


def _client(socket_fd: int) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    transport = httpx.AsyncHTTPTransport(uds=f"/proc/self/fd/{socket_fd}", limits=limits)
    timeout = httpx.Timeout(None, connect=_CONNECT_S)
    return httpx.AsyncClient(transport=transport, base_url="http://runner", timeout=timeout, trust_env=False)


async def _health_or_none(http: httpx.AsyncClient) -> RunnerHealth | None:
    try:
        return await _ask_health(http)
    except (httpx.HTTPError, TimeoutError, ValidationError):
        return None


async def _ask_health(http: httpx.AsyncClient) -> RunnerHealth:
    body = b""
    # One deadline for the whole answer: a time-out per read would let a tenant drip bytes forever.
    async with asyncio.timeout(_HEALTH_S), http.stream("GET", "/health") as reply:
        async for chunk in reply.aiter_raw():
            body += chunk
            if len(body) > _HEALTH_BYTES_MAX:
                raise httpx.DecodingError("the health answer is too long")
    return RunnerHealth.model_validate_json(body)

"""Bringing a release up in a sandbox on this host, and what each way of failing means for the attempt.

Knows `trainer.sandboxing`. Refuses to know what the runner is used for.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from trainer.contracts.base import new_id
from trainer.contracts.events import FailureCode
from trainer.contracts.internal import AttemptSpec, SandboxValues
from trainer.contracts.redaction import Redactor
from trainer.contracts.rollouts import ReleaseSpec, RunnerLimits, SeatModel
from trainer.contracts.run_config import EnvironmentRef
from trainer.orchestrator.attempt.endings import AttemptOver, failed
from trainer.orchestrator.environments.runner_life import StartRunner
from trainer.orchestrator.transport.backoff import Backoff
from trainer.sandboxing.releases import ReleaseVenv, ensure_release
from trainer.sandboxing.runners import EnvironmentBroken, RunnerHandle, RunnerLost, start_runner
from trainer.sandboxing.specs import SandboxLimits, SandboxStartFailed, SandboxUnavailable
from trainer.sandboxing.uv import InstallFailed
from trainer.sandboxing.wheels import ReleaseRefused

WHEEL_BYTES_MAX = 256 << 20
FETCH_GIVE_UP_S = 60.0
LIFE_MOST_S = 30 * 86_400.0
"""A sandbox lives as long as its attempt; the lease decides, this only says that nothing is endless."""
LOG_TAIL = 4_000


def limits_of(ref: EnvironmentRef) -> RunnerLimits:
    """The limits of a rollout as the configuration gives them."""
    defaults = RunnerLimits()
    return RunnerLimits(
        max_turns=ref.max_turns,
        max_total_tokens=ref.max_total_tokens or defaults.max_total_tokens,
        rollout_s=ref.timeout,
    )


def runner_starter(
    spec: AttemptSpec,
    release: ReleaseSpec,
    *,
    runner_dir: Path,
    args: Mapping[str, Any],
    limits: RunnerLimits,
    values: Callable[[], Awaitable[SandboxValues]],
    redactor: Redactor,
    seats: Mapping[str, SeatModel] | None = None,
    held_out: bool = False,
) -> StartRunner:
    """A start that can be repeated: the release's venv is made once and reused. `values` are asked for each time, so that what
    was revoked is gone with the next sandbox, and are taught to `redactor` first. `held_out`: for an evaluation."""

    async def start(folder: Path) -> RunnerHandle:
        venv = await installed(release, runner_dir)
        current = await values()
        redactor.learn(current.secret_texts())
        try:
            return await start_runner(
                venv,
                spec.base_model,
                folder,
                sandbox_id=new_id(),
                args=args,
                secrets={**current.variables, **current.secrets, **spec.secrets},
                secret_files={name: content for name, content in current.files.items() if name not in spec.secrets},
                limits=limits,
                seats=seats,
                held_out=held_out,
                sandbox_limits=SandboxLimits(deadline_s=LIFE_MOST_S),
                labels={"subject": spec.subject_id, "attempt": str(spec.attempt), "fencing_token": str(spec.fencing_token)},
                backend=spec.sandbox_backend,
            )
        except EnvironmentBroken as error:
            place = {"module": error.error.module, "line": error.error.line}
            message = redactor.text(f"{release.environment} does not load: {error}")
            raise failed(FailureCode.ENVIRONMENT_BROKEN, message, log=redactor.text(error.log)[-LOG_TAIL:], **place) from error
        except RunnerLost as error:
            message = redactor.text(f"{release.environment} did not start: {error}")
            raise failed(FailureCode.ENVIRONMENT_BROKEN, message, log=redactor.text(error.log)[-LOG_TAIL:]) from error
        except (SandboxUnavailable, SandboxStartFailed) as error:
            raise failed(FailureCode.INTERNAL, f"no sandbox could be started on this host: {error}") from error

    return start


async def installed(release: ReleaseSpec, runner_dir: Path) -> ReleaseVenv:
    """The release's venv. Raises AttemptOver with the installer's words, or with the operator's where it is withheld."""
    if release.withheld:
        raise failed(FailureCode.ENVIRONMENT_BROKEN, f"{release.environment}@{release.version} {release.withheld}")
    try:
        return await ensure_release(runner_dir, release, fetch_wheel)
    except (ReleaseRefused, InstallFailed) as error:
        raise failed(FailureCode.ENVIRONMENT_BROKEN, f"{release.environment} cannot be installed: {error}") from error


async def fetch_wheel(url: str) -> bytes:
    """Bytes behind a signed address, with a limit. The digest is checked by whoever installs them."""
    backoff = Backoff(give_up_s=FETCH_GIVE_UP_S)
    while True:
        try:
            return await _fetched(url)
        except httpx.HTTPError as error:
            if not await backoff.wait():
                raise failed(FailureCode.INTERNAL, f"the wheel could not be fetched: {type(error).__name__}") from error


async def _fetched(url: str) -> bytes:
    body = bytearray()
    async with (
        httpx.AsyncClient(trust_env=False, follow_redirects=True, timeout=30.0) as http,
        http.stream("GET", url) as response,
    ):
        response.raise_for_status()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > WHEEL_BYTES_MAX:
                raise AttemptOver("failed", f"the wheel is larger than {WHEEL_BYTES_MAX} bytes", FailureCode.ENVIRONMENT_BROKEN)
    return bytes(body)

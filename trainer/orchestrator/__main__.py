"""`python -m trainer.orchestrator`: one attempt, from its token to its end.

Knows the environment variables, signals and exit codes. Refuses to know what the attempt does. Exit codes: 0 the end was
reported, 3 the lease was lost (nothing more was written), 1 anything else; a process that dies without a report is replaced by
whoever watches its lease.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from pathlib import Path

import uvloop

from trainer.contracts.events import FailureCode
from trainer.contracts.internal import ATTEMPT_TOKEN_VARIABLE, INTERNAL_URL_VARIABLE, Finish
from trainer.contracts.redaction import Redactor
from trainer.orchestrator.attempt.control import ControlClient, internal_client
from trainer.orchestrator.attempt.endings import AttemptOver, StaleLease, failed, first_ending
from trainer.orchestrator.attempt.heartbeat import Desire, Status, keep_beating
from trainer.orchestrator.attempt.masking import masked_finish
from trainer.orchestrator.attempt.reporting import Reporter
from trainer.orchestrator.attempt.services import pool_client
from trainer.orchestrator.environments.runner_start import runner_starter
from trainer.orchestrator.exporting import export_version
from trainer.orchestrator.hosted_eval import run_evaluation
from trainer.orchestrator.release_check import check_release
from trainer.orchestrator.run.setup import run_training
from trainer.orchestrator.workplace import Starter, Workplace

POOL_TOKEN_VARIABLE = "ROOTSTOCK_POOL_TOKEN"
RUNNER_DIR_VARIABLE = "ROOTSTOCK_RUNNER_DIR"
EXIT_STALE = 3

WORK = {"run": run_training, "eval": run_evaluation, "release": check_release, "export": export_version}


async def attend(
    control: ControlClient,
    *,
    runner_dir: Path,
    pool_token: str | None,
    starter: Starter = runner_starter,
    redactor: Redactor | None = None,
) -> Finish:
    """Do the attempt's work under its lease and report the end. `redactor` learns each secret before a sandbox gets it. Raises
    StaleLease."""
    spec = await control.attempt()
    reporter, status, desire = Reporter(control, redactor), Status(step=spec.resume_step), Desire()
    reporter.redactor.learn([*spec.secrets.values(), *([spec.external.api_key] if spec.external else [])])
    reporter.redactor.learn([spec.external.api_key] if spec.external else [])
    async with pool_client(pool_token) as pool_http, asyncio.TaskGroup() as pulse:
        beat = pulse.create_task(keep_beating(control, status, desire, lease_s=spec.lease_s), name="heartbeat")
        sender = pulse.create_task(reporter.run(), name="reporter")
        place = Workplace(spec, control, reporter, status, desire, runner_dir, pool_http, pool_token, starter)
        reporter.log(f"attempt {spec.attempt} of {spec.kind} {spec.subject_id} starts")
        try:
            finish = masked_finish(reporter.redactor, await _finish_of(place))
        finally:
            await place.stop_environments()
        reporter.log(f"{finish.outcome}: {finish.message}", level="error" if finish.outcome == "failed" else "info")
        await reporter.flush()
        await control.finish(finish)
        beat.cancel()
        sender.cancel()
    return finish


async def _finish_of(place: Workplace) -> Finish:
    """The work's own end, or the report of an error that nobody foresaw."""
    try:
        return await WORK[place.spec.kind](place)
    except Exception as error:
        cause = first_ending(error)
        if isinstance(cause, StaleLease):
            raise cause from error
        logging.getLogger("rootstock.orchestrator").exception("the attempt ends by an error")
        over = cause if isinstance(cause, AttemptOver) else failed(FailureCode.INTERNAL, f"{type(cause).__name__}: {cause}")
        return Finish(outcome=over.outcome, code=over.code, message=over.message, detail=over.detail)


class MaskingFormatter(logging.Formatter):
    """Masks the whole line, the traceback too."""

    def __init__(self, redactor: Redactor):
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.text(super().format(record))


async def main() -> int:
    redactor, handler = Redactor(), logging.StreamHandler(sys.stderr)
    handler.setFormatter(MaskingFormatter(redactor))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("httpx").setLevel(logging.WARNING)
    control = ControlClient(internal_client(os.environ[INTERNAL_URL_VARIABLE], os.environ[ATTEMPT_TOKEN_VARIABLE]))
    task = asyncio.ensure_future(
        attend(
            control,
            runner_dir=Path(os.environ[RUNNER_DIR_VARIABLE]),
            pool_token=os.environ.get(POOL_TOKEN_VARIABLE),
            redactor=redactor,
        )
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    async with contextlib.aclosing(control):
        try:
            await task
        except asyncio.CancelledError:
            return 1
        except BaseException as error:
            cause = first_ending(error)
            logging.getLogger("rootstock.orchestrator").error("%s: %s", type(cause).__name__, cause)
            return EXIT_STALE if isinstance(cause, StaleLease) else 1
    return 0


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))

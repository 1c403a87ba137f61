"""From a granted lease to a running process, and back: what every kind of leased work shares."""

import logging
from functools import cache
from pathlib import Path
from subprocess import SubprocessError

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from controlplane.pools.models import Lease
from controlplane.pools.services import GrantedAttempt, record_holder, take_back
from trainer.contracts.internal import ATTEMPT_TOKEN_VARIABLE, INTERNAL_URL_VARIABLE
from workers.launchers import Holder, Job, Launcher
from workers.launchers.process import ProcessLauncher

logger = logging.getLogger(__name__)


@cache
def launcher() -> Launcher:
    return ProcessLauncher(Path(required("LOG_DIR")) / "attempts")


def required(name: str) -> str:
    """A setting that only workers need. Its variable is ROOTSTOCK_<name>."""
    value = getattr(settings, name)
    if not value:
        raise ImproperlyConfigured(f"a worker that starts attempts needs the variable ROOTSTOCK_{name}")
    return str(value)


def launch(granted: GrantedAttempt) -> bool:
    """Start the attempt's process and note it on the lease. A start that fails gives the lease back at once; one that the
    lease did not survive is killed."""
    lease = granted.lease
    try:
        holder = launcher().start(job_of(granted))
    except (OSError, SubprocessError, ImproperlyConfigured) as error:
        logger.exception("attempt %s of %s %s did not start", lease.attempt, lease.subject_kind, lease.subject_id)
        take_back(lease.id, reason=f"not started: {type(error).__name__}", only_expired=False)
        return False
    if not record_holder(lease, host=holder.host, pid=holder.pid, started=holder.started):
        launcher().kill(holder)
        return False
    return True


def job_of(granted: GrantedAttempt) -> Job:
    lease = granted.lease
    variables = {
        ATTEMPT_TOKEN_VARIABLE: granted.token,
        INTERNAL_URL_VARIABLE: required("INTERNAL_URL"),
        "ROOTSTOCK_POOL_TOKEN": required("POOL_TOKEN"),
        "ROOTSTOCK_RUNNER_DIR": required("RUNNER_DIR"),
    }
    return Job(f"{lease.subject_kind}-{lease.subject_id}-{lease.attempt}", variables)


def holder_of(lease: Lease) -> Holder | None:
    """Who holds a lease, once its process has been noted."""
    if lease.holder_pid is None or lease.holder_started is None:
        return None
    return Holder(lease.holder_host, lease.holder_pid, lease.holder_started)

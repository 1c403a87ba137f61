"""Which services the one-machine stack has, with what command each starts, and in which order.

Knows the stack's places and addresses. Refuses to know how processes are watched (`supervisor`), what they answer (`checks`) and
what stands behind an engine (`engines`).
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial

from workers.embedded.checks import FirstThenAlive, answers, worker_answers
from workers.embedded.engines import engine_services, model_service
from workers.embedded.stack import Stack, StackError
from workers.embedded.supervisor import Service

POOL_NAME = "embedded"
PACK_TOKENS = {"tiny": 256}
"""Small packs where a pass takes milliseconds: a batch that arrives while another run's is computed joins it at the next pack."""
PACK_TOKENS_DEFAULT = 2048
"""Whole groups in one pass: what their samples share is computed once."""
TRAINER_OPTIONS_VARIABLE = "ROOTSTOCK_TRAINER_OPTIONS"
_MIGRATION_S = 300


def services_of(stack: Stack) -> list[Service]:
    """In the order in which they start; they stop in reverse."""
    made = [*_stores(stack), _trainer(stack), *engine_services(stack), *_web(stack), *_workers(stack)]
    own_database, own_broker = "DATABASE_URL" not in os.environ, "BROKER_URL" not in os.environ
    return [s for s in made if (s.name != "postgres" or own_database) and (s.name != "valkey" or own_broker)]


def trainer_options() -> list[str]:
    """More words for the trainer's command; what stands later on it wins."""
    return shlex.split(os.environ.get(TRAINER_OPTIONS_VARIABLE, ""))


def _stores(stack: Stack) -> list[Service]:
    postgres, valkey, environment = stack.postgres, stack.valkey, stack.environment()
    return [
        Service(
            "postgres",
            postgres.command(),
            environment,
            postgres.is_ready,
            stop_signal=signal.SIGINT,
            user=postgres.identity.user,
            before=postgres.initialise,
        ),
        Service("valkey", valkey.command(), environment, valkey.is_ready),
    ]


def _trainer(stack: Stack) -> Service:
    stack.artifacts.mkdir(exist_ok=True)
    pack_tokens = PACK_TOKENS.get(stack.model, PACK_TOKENS_DEFAULT)
    return model_service(stack, "trainer", "trainer.service", "--pack-tokens", str(pack_tokens), *trainer_options())


def _web(stack: Stack) -> list[Service]:
    return [
        _uvicorn(stack, "web", "controlplane.asgi:application", before=partial(_migrate, stack)),
        _uvicorn(stack, "internal", "controlplane.asgi_internal:application"),
    ]


def _uvicorn(stack: Stack, name: str, application: str, before: Callable[[], None] | None = None) -> Service:
    command = [sys.executable, "-m", "uvicorn", application, "--host", "127.0.0.1", "--port", str(stack.ports[name])]
    command += ["--timeout-graceful-shutdown", "3", "--timeout-keep-alive", "75", "--no-access-log"]
    check = partial(answers, stack.url(name) + "/healthz")
    return Service(name, command, stack.environment(), check, before=before, others_wait=False)


def _workers(stack: Stack) -> list[Service]:
    celery, environment = [sys.executable, "-m", "celery", "-A", "workers.app"], stack.environment()
    name = f"rootstock-{stack.ports['web']}@localhost"
    worker = [*celery, "worker", "--concurrency", "2", "--loglevel", "INFO", "-n", name]
    beat = [*celery, "beat", "--loglevel", "INFO", "--schedule", str(stack.root / "beat-schedule"), "--pidfile", ""]
    check = FirstThenAlive(partial(worker_answers, environment["BROKER_URL"], name))
    return [
        Service("worker", worker, environment, check, others_wait=False),
        Service("beat", beat, environment, lambda: True, others_wait=False),
    ]


def _migrate(stack: Stack) -> None:
    """Roles, schema and the pool's row, in one process: starting Django three times would take longer than the work."""
    command = [sys.executable, "-m", "workers.embedded.database", "--pool", POOL_NAME, "--model", stack.model]
    command += ["--engine", stack.engine, "--trainer-url", stack.url("trainer"), "--inference-url", stack.url("inference")]
    done = subprocess.run(command, env=stack.environment(), capture_output=True, text=True, check=False, timeout=_MIGRATION_S)
    if done.returncode != 0:
        raise StackError(f"preparing the database failed: {(done.stderr or done.stdout)[-3000:]}")

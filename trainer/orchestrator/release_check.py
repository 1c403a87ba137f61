"""A release check: does the environment install, load, list a task and play one rollout? Green or red, with the reason.

Knows what is tried, in order. Refuses to judge rewards: any finite number will do. A red verdict is a result, not a failure of
the attempt; only what is our fault (no sandbox on this host) fails it.
"""

import time
from dataclasses import dataclass

from trainer.contracts.base import new_id
from trainer.contracts.catalogue import model_folder
from trainer.contracts.events import FailureCode
from trainer.contracts.internal import LOCK_MAX_CHARACTERS, Compatibility, Finish, ReleaseVerdict
from trainer.contracts.rollouts import MODEL_SOCKET, RolloutEnd, RolloutRequest, RolloutSampling, RunnerLimits, TenantError
from trainer.orchestrator.attempt.endings import AttemptOver, failed
from trainer.orchestrator.engines.canned import DIGEST, CannedEngine
from trainer.orchestrator.engines.gate import EngineGate
from trainer.orchestrator.engines.policies import Policy
from trainer.orchestrator.environments.environment import Environment
from trainer.orchestrator.environments.runner_client import RunnerSilent
from trainer.orchestrator.rollouts.verdicts import judge
from trainer.orchestrator.transport.link import Link
from trainer.orchestrator.transport.unix_server import serve_unix
from trainer.orchestrator.workplace import Workplace
from trainer.sandboxing.runners import runner_folder

ROLLOUT_S = 60.0
ENGINE_S = 5.0
MAX_TOKENS = 64
LOG_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Finding:
    ok: bool
    summary: str
    error: TenantError | None = None
    tasks_count: int | None = None
    log: str = ""
    requirements_lock: str = ""
    compatibility: Compatibility | None = None


async def check_release(place: Workplace) -> Finish:
    """Raises StaleLease."""
    started_s = time.monotonic()
    if not place.spec.releases:
        raise failed(FailureCode.INTERNAL, "an attempt of kind release came without a release")
    try:
        finding = await _found(place)
    except AttemptOver as ending:
        if ending.code is not FailureCode.ENVIRONMENT_BROKEN:
            return Finish(outcome="failed", code=ending.code, message=ending.message)
        finding = _broken(ending)
    verdict = ReleaseVerdict(
        ok=finding.ok,
        summary=finding.summary[:2000],
        module=finding.error.module if finding.error else None,
        line=finding.error.line if finding.error else None,
        log=finding.log[-LOG_MAX:],
        tasks_count=finding.tasks_count,
        duration_s=time.monotonic() - started_s,
        requirements_lock=finding.requirements_lock,
        compatibility=finding.compatibility,
    )
    return Finish(outcome="completed", message=finding.summary[:2000], verdict=verdict)


async def _found(place: Workplace) -> Finding:
    """The check with its canned engine, served for as long as it takes."""
    model = place.spec.base_model
    canned = CannedEngine(model.id, model_folder(model.tokenizer))
    place.policies.publish(Policy(model.id, DIGEST))
    with runner_folder() as folder:
        async with serve_unix(canned.app, folder / MODEL_SOCKET):
            link = Link.to_socket(folder / MODEL_SOCKET)
            environment = _environment(place, EngineGate(link, None, place.reporter.incident, patience_s=ENGINE_S))
            place.environments = {environment.name: environment}
            try:
                return await _check(place, environment)
            finally:
                await place.stop_environments()
                link.close()


def _environment(place: Workplace, gate: EngineGate) -> Environment:
    release = place.spec.releases[0]
    proxy = place.proxy(release.environment, gate, temperature=1.0, max_tokens=MAX_TOKENS)
    return Environment(
        release.environment,
        place.start_runner(release, {}, RunnerLimits(max_turns=4, rollout_s=ROLLOUT_S)),
        model_app=proxy.app,
        reporter=place.reporter,
        meter_name=f"{place.spec.attempt}.check",
    )


async def _check(place: Workplace, environment: Environment) -> Finding:
    place.phase("installing and loading the release")
    await environment.start()
    task = await environment.tasks.at(0)
    place.phase("playing one rollout on a canned model")
    request = RolloutRequest(
        rollout_id=new_id(),
        task=task.index,
        policy=place.policies.current.engine_name,
        sampling=RolloutSampling(max_tokens=MAX_TOKENS),
        deadline_s=ROLLOUT_S,
    )
    count = environment.tasks.count
    try:
        end = await environment.roll(request)
    except RunnerSilent as error:
        return Finding(False, f"the runner was lost during the first rollout: {error}", None, count, environment.logs())
    if len(environment.requirements_lock) > LOCK_MAX_CHARACTERS:
        return Finding(False, "it needs more packages than can be locked", None, count, environment.logs())
    outcome = judge(end, place.sessions, environment=environment.name, engine_name=request.policy)
    if outcome.state == "ok":
        known = "at least one task" if count is None else f"{count} tasks"
        summary, lock = f"loads, lists {known} and plays a rollout", environment.requirements_lock
        return Finding(True, summary, None, count, environment.logs(), lock, _compatibility(environment, end))
    return Finding(False, f"the first rollout failed: {outcome.error}", _first(end), count, environment.logs())


def _compatibility(environment: Environment, end: RolloutEnd) -> Compatibility:
    agents = sorted({report.agent for report in end.traces})
    return Compatibility(
        agents=agents,
        trained_agents=sorted({report.agent for report in end.traces if report.trainable}),
        turns=max((report.turns for report in end.traces), default=0),
        calls_tools=any(message.get("role") == "tool" for report in end.traces for message in report.messages),
        group_rewards=list(environment.health.group_rewards),
    )


def _first(end: RolloutEnd) -> TenantError | None:
    errors = [*end.errors, *(error for report in end.traces for error in report.errors)]
    return errors[0] if errors else None


def _broken(ending: AttemptOver) -> Finding:
    module, line = ending.detail.get("module"), ending.detail.get("line")
    error = TenantError(type="Broken", message=ending.message[:2000], module=module, line=line)
    return Finding(False, ending.message, error, None, str(ending.detail.get("log", "")))

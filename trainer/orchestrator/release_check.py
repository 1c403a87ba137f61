"""A release check: does the environment install, load, hold tasks that are fit to be played, and play a few? Green or red, with
the reason.

Knows what is tried, in order. Refuses to judge rewards. A red verdict is a result, not a failure of the attempt; only what is our
fault (no sandbox on this host) fails it.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainer.contracts.catalogue import model_folder
from trainer.contracts.events import FailureCode
from trainer.contracts.interfaces import Interface
from trainer.contracts.internal import LOCK_MAX_CHARACTERS, Compatibility, Finish, ReleaseVerdict
from trainer.contracts.release_checks import UNTRAINED, HarnessFit, Inspection, InspectionRequest, Needs, spread
from trainer.contracts.rollouts import MODEL_SOCKET, RunnerLimits, TenantError
from trainer.orchestrator.attempt.endings import AttemptOver, failed
from trainer.orchestrator.engines.canned import DIGEST, CannedEngine
from trainer.orchestrator.engines.gate import EngineGate
from trainer.orchestrator.engines.policies import Policy
from trainer.orchestrator.environments.environment import Environment
from trainer.orchestrator.environments.runner_client import RunnerSilent, TenantRefused
from trainer.orchestrator.rollouts.verdicts import describe
from trainer.orchestrator.sample_rollouts import MAX_TOKENS, ROLLOUT_S, SAMPLES, Sample, failure_of, play_samples
from trainer.orchestrator.transport.link import Link
from trainer.orchestrator.transport.unix_server import serve_unix
from trainer.orchestrator.workplace import Workplace
from trainer.sandboxing.runners import runner_folder

ENGINE_S = 5.0
LOG_MAX = 100_000
_ASKED_FOR_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable|OfflineModeIsEnabled"
    r"|LocalEntryNotFoundError|offline mode|outgoing traffic has been disabled|[Cc]ouldn't reach|ConnectError|NameResolutionError"
)


@dataclass(frozen=True, slots=True)
class Finding:
    ok: bool
    summary: str
    error: TenantError | None = None
    tasks_count: int | None = None
    log: str = ""
    requirements_lock: str = ""
    inspection: Inspection | None = None
    samples: Sequence[Sample] = ()
    group_rewards: Sequence[str] = ()
    interface: Interface | None = None


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
    verdict = _verdict(finding, time.monotonic() - started_s)
    return Finish(outcome="completed", message=verdict.summary, verdict=verdict)


def _verdict(finding: Finding, duration_s: float) -> ReleaseVerdict:
    inspection = finding.inspection
    return ReleaseVerdict(
        ok=finding.ok,
        summary=finding.summary[:2000],
        module=finding.error.module if finding.error else None,
        line=finding.error.line if finding.error else None,
        log=finding.log[-LOG_MAX:],
        tasks_count=finding.tasks_count,
        duration_s=duration_s,
        requirements_lock=finding.requirements_lock,
        compatibility=_compatibility(finding),
        splits=inspection.splits if inspection else [],
        problems=inspection.problems if inspection else [],
        samples=[sample.kept() for sample in finding.samples],
    )


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
    place.phase("reading its tasks")
    try:
        inspection = await environment.inspect(InspectionRequest())
        if inspection.problems:
            return _finding(environment, _told(inspection), inspection=inspection)
        checked = inspection.splits[0].checked or [0]
        place.phase("playing rollouts on a canned model")
        samples = await play_samples(place, environment, [checked[number] for number in spread(len(checked), SAMPLES)])
    except TenantRefused as broken:
        return _finding(environment, f"its tasks cannot be checked: {describe(broken.error)}", error=broken.error)
    except RunnerSilent as silent:
        return _finding(environment, f"the runner was lost while its tasks were checked: {silent}")
    return _settled(environment, inspection, samples)


def _settled(environment: Environment, inspection: Inspection, samples: list[Sample]) -> Finding:
    seen = {"inspection": inspection, "samples": samples}
    if len(environment.requirements_lock) > LOCK_MAX_CHARACTERS:
        return _finding(environment, "it needs more packages than can be locked", **seen)
    if failure := failure_of(samples):
        error = next((sample.error for sample in samples if not sample.is_good), None)
        return _finding(environment, failure, error=error, **seen)
    return _finding(environment, _praise(environment.tasks.count, samples), ok=True, **seen)


def _praise(count: int | None, samples: list[Sample]) -> str:
    known = "tasks without a known end" if count is None else f"{count} tasks"
    played = "a rollout" if len(samples) == 1 else f"{len(samples)} rollouts"
    is_trained = any(report.trainable for sample in samples for report in sample.end.traces)
    return f"loads, lists {known} and plays {played}" + ("" if is_trained else f"; {UNTRAINED}")


def _finding(environment: Environment, summary: str, *, ok: bool = False, **seen: Any) -> Finding:
    """What was found by an environment that loads. Only what passed has a lock."""
    lock = environment.requirements_lock if ok else ""
    return Finding(
        ok,
        summary,
        tasks_count=environment.tasks.count,
        log=environment.logs(),
        requirements_lock=lock,
        group_rewards=environment.health.group_rewards,
        interface=environment.interface,
        **seen,
    )


def _told(inspection: Inspection) -> str:
    """The first problem by its place, and how many more there are."""
    first, more = inspection.problems[0], len(inspection.problems) - 1
    split = f" of split {first.split}" if first.split else ""
    return f"task {first.task}{split}: {first.field}: {first.message}" + (f" (and {more} more)" if more else "")


def _compatibility(finding: Finding) -> Compatibility | None:
    needs = finding.inspection.needs if finding.inspection else _needs_of_broken(finding)
    if needs is None:
        return None
    reports = [report for sample in finding.samples for report in sample.end.traces]
    trained = sorted({report.agent for report in reports if report.trainable})
    fits = [fit if number or trained else _untrained(fit, has_played=bool(reports)) for number, fit in enumerate(needs.harnesses)]
    return Compatibility(
        interface=finding.interface,
        agents=sorted({report.agent for report in reports}),
        trained_agents=trained,
        turns=max((report.turns for report in reports), default=0),
        calls_tools=any(message.get("role") == "tool" for report in reports for message in report.messages),
        group_rewards=list(finding.group_rewards),
        needs=needs.model_copy(update={"harnesses": fits}),
    )


def _untrained(fit: HarnessFit, *, has_played: bool) -> HarnessFit:
    """The harness that plays it, of an environment in which no agent was seen to be trained."""
    why = UNTRAINED if has_played else "no rollout was played, and none has shown an agent that is trained"
    return fit.model_copy(update={"train": False, "reason": fit.reason or why})


def _needs_of_broken(finding: Finding) -> Needs | None:
    """Of an environment that does not load: whether what it said is what code says that reaches for a network."""
    return Needs(network=True) if _ASKED_FOR_NETWORK.search(f"{finding.summary}\n{finding.log}") else None


def _broken(ending: AttemptOver) -> Finding:
    module, line = ending.detail.get("module"), ending.detail.get("line")
    error = TenantError(type="Broken", message=ending.message[:2000], module=module, line=line)
    return Finding(False, ending.message, error, None, str(ending.detail.get("log", "")))

"""Masks an attempt's secrets in what comes out of a sandbox and in how the attempt ends, before any of it is cut, kept or sent.

Knows which fields are the tenant's own words. Refuses to touch the others, which are the protocol's: a secret that reads
`cancelled` must not break it. Token ids and what they score are no text and stay as the proxy recorded them.
"""

from trainer.contracts.internal import Finish
from trainer.contracts.redaction import Redactor
from trainer.contracts.release_checks import Inspection
from trainer.contracts.rollouts import RolloutEnd, TaskPage, TenantError, TraceReport


def masked_page(redactor: Redactor, page: TaskPage) -> TaskPage:
    if redactor.is_idle:
        return page
    tasks = [
        task.model_copy(update={name: redactor.text(getattr(task, name)) for name in ("key", "preview", "hint")})
        for task in page.tasks
    ]
    return page.model_copy(update={"tasks": tasks})


def masked_inspection(redactor: Redactor, inspection: Inspection) -> Inspection:
    if redactor.is_idle:
        return inspection
    needs = inspection.needs
    needs = needs.model_copy(update={name: redactor.document(getattr(needs, name)) for name in ("tools", "skills")})
    splits = [
        split.model_copy(update={name: redactor.text(getattr(split, name)) for name in ("name", "open_setting")})
        for split in inspection.splits
    ]
    problems = [
        problem.model_copy(update={name: redactor.text(getattr(problem, name)) for name in ("split", "field", "message")})
        for problem in inspection.problems
    ]
    return inspection.model_copy(update={"needs": needs, "splits": splits, "problems": problems})


def masked_end(redactor: Redactor, end: RolloutEnd) -> RolloutEnd:
    if redactor.is_idle:
        return end
    traces = [_masked_trace(redactor, trace) for trace in end.traces]
    return end.model_copy(update={"traces": traces, "errors": [masked_error(redactor, error) for error in end.errors]})


def _masked_trace(redactor: Redactor, trace: TraceReport) -> TraceReport:
    """Names of rewards and metrics are the tenant's too."""
    masked = {name: redactor.document(getattr(trace, name)) for name in ("messages", "rewards", "metrics", "stop")}
    return trace.model_copy(update=masked | {"errors": [masked_error(redactor, error) for error in trace.errors]})


def masked_error(redactor: Redactor, error: TenantError) -> TenantError:
    return error.model_copy(
        update={name: redactor.document(getattr(error, name)) for name in ("type", "message", "module", "function")}
    )


def masked_finish(redactor: Redactor, finish: Finish) -> Finish:
    if redactor.is_idle:
        return finish
    masked = {"message": redactor.text(finish.message), "detail": redactor.document(finish.detail)}
    return finish.model_copy(update=masked)

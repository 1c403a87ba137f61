"""What a sandbox says is masked before anybody sees it; what is the protocol's stays whole."""

import io
import logging

import pytest

from trainer.contracts.events import FailureCode
from trainer.contracts.internal import Finish
from trainer.contracts.redaction import MASK, Redactor
from trainer.contracts.rollouts import RolloutEnd, TaskEntry, TaskPage, TenantError, TraceReport
from trainer.orchestrator.__main__ import MaskingFormatter
from trainer.orchestrator.attempt.masking import masked_end, masked_finish, masked_page

SECRET = "sk-live-0123456789"
ERROR = TenantError(type="ValueError", message=f"bad key {SECRET}", module="judge", line=3, function="ask")


def end(**changes) -> RolloutEnd:
    trace = TraceReport(
        trace_id="t1",
        state="ok",
        reward=1.0,
        rewards={f"part {SECRET}": 1.0},
        metrics={SECRET: 2.0},
        stop=SECRET,
        errors=[ERROR],
        messages=[{"role": "assistant", "content": [{"type": "text", "text": f"it is {SECRET}"}]}],
    )
    return RolloutEnd(state="ok", traces=[trace], errors=[ERROR], **changes)


@pytest.mark.gate("R15")
def test_every_word_of_the_tenant_in_a_rollout_is_masked():
    masked = masked_end(Redactor([SECRET]), end())
    assert SECRET not in masked.model_dump_json()
    assert masked.traces[0].rewards == {f"part {MASK}": 1.0} and masked.traces[0].messages[0]["role"] == "assistant"
    assert masked.errors[0].message == f"bad key {MASK}" and masked.errors[0].line == 3


def test_a_secret_that_reads_like_the_protocol_breaks_nothing():
    words = ["cancelled", "incomplete", "infrastructure"]
    given = end(fault="infrastructure").model_copy(update={"state": "incomplete"})
    masked = masked_end(Redactor(words), given)
    assert RolloutEnd.model_validate(masked.model_dump()) == given


@pytest.mark.gate("R15")
def test_tasks_and_the_end_of_an_attempt_are_masked():
    page = TaskPage(tasks=[TaskEntry(index=0, key=SECRET, preview=f"use {SECRET}", hint=SECRET)], cursor=None)
    finish = Finish(outcome="failed", code=FailureCode.ENVIRONMENT_BROKEN, message=f"no {SECRET}", detail={"log": f"a\n{SECRET}"})
    redactor = Redactor([SECRET])
    assert SECRET not in masked_page(redactor, page).model_dump_json()
    assert SECRET not in masked_finish(redactor, finish).model_dump_json()


def test_without_secrets_nothing_is_copied():
    given = end()
    assert masked_end(Redactor(), given) is given


@pytest.mark.gate("R15")
def test_the_processs_own_log_is_masked_with_its_tracebacks():
    stream, redactor = io.StringIO(), Redactor()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(MaskingFormatter(redactor))
    logger = logging.Logger("masked")
    logger.addHandler(handler)
    redactor.learn([SECRET])
    try:
        raise RuntimeError(f"refused {SECRET}")
    except RuntimeError:
        logger.exception("with %s", SECRET)
    assert SECRET not in stream.getvalue() and "RuntimeError" in stream.getvalue()

"""Drains the outbox: runs what committed changes have asked for."""

import logging

from controlplane.core import outbox
from controlplane.core.models import OutboxMessage
from workers.app import app

logger = logging.getLogger(__name__)
CLAIM_MAX = 10
"""Small, so that the last message of a claim still runs well within the claim's lease."""
ROUNDS_MAX = 20


@app.task(name=outbox.DRAIN_TASK)
def drain() -> int:
    """Run what is due; returns how many messages were run. Each runs here and now rather than through the broker: a message is
    done when its task has returned, not when somebody has heard of it."""
    handled = 0
    for _ in range(ROUNDS_MAX):
        messages = outbox.claim(CLAIM_MAX)
        if not messages:
            break
        for message in messages:
            run_message(message)
        handled += len(messages)
    return handled


def run_message(message: OutboxMessage) -> None:
    """The top of the worker's loop: whatever a task raises is kept with the message, which is tried again later."""
    try:
        app.tasks[message.task](**message.payload)
    except Exception as error:
        logger.exception("outbox message %s (%s) failed", message.key, message.task)
        outbox.mark_failed(message, f"{type(error).__name__}: {error}")
    else:
        outbox.mark_done(message)

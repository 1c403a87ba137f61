"""Model calls that no rollout claimed, as rows of their own.

Knows the shape of such a row. An environment that calls the model outside its traces has still used it: shown, and billed.
"""

from collections.abc import Mapping

from trainer.orchestrator.proxy.sessions import Session
from trainer.orchestrator.rollouts.rollout import Accounted, Rollout
from trainer.orchestrator.rollouts.verdicts import unclaimed_outcome

GROUP = "outside rollouts"


def unclaimed_rollouts(sessions: Mapping[tuple[str, str], Session]) -> list[Accounted]:
    rows = []
    for (environment, session_id), session in sessions.items():
        if not session.calls:
            continue
        rollout = Rollout(session_id, GROUP, environment, -1, "", "", 0, session.opened_s, session.opened_s)
        rollout.outcome = unclaimed_outcome(session)
        state = rollout.outcome.state
        rows.append(Accounted(rollout, state, trained=False, staleness=0, billed=state == "failed"))
    return rows

"""What the rollout proxy saw, by session: the only source of training tokens and of bills.

Knows calls and sessions (`X-Session-ID`, the trace's id). Refuses to know rollouts, rewards and HTTP. A session is taken
once; what nobody claims is handed out by `unclaimed`, so that no token is trained twice and none escapes the bill.
"""

from dataclasses import dataclass, field
from typing import Literal

from trainer.contracts.samples import ArtifactRef

CALLS_PER_SESSION_MAX = 4096


@dataclass(frozen=True, slots=True)
class Call:
    """One answered model call. `logprobs` aligns with `token_ids`. A chat call records usage and identity only: it is never
    trained on. Times are seconds of the event loop's clock."""

    engine_name: str
    adapter_digest: str
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    temperature: float
    input_tokens: int
    output_tokens: int
    finish_reason: str
    route: Literal["generate", "chat"] = "generate"
    routed_experts: ArtifactRef | None = None
    multimodal: ArtifactRef | None = None
    """What the tokens of prompt and reply together took, and the pictures of the prompt."""
    seat: str = ""
    """The agent that another model than the policy played with this call."""
    started_s: float = 0.0
    ended_s: float = 0.0

    @property
    def duration_s(self) -> float:
        return max(0.0, self.ended_s - self.started_s)


@dataclass(slots=True)
class Session:
    """`infrastructure` is the engine's failure that a call of this session met, if any. `live` counts unanswered calls."""

    opened_s: float
    calls: list[Call] = field(default_factory=list)
    live: int = 0
    infrastructure: str | None = None


class SessionBook:
    """Sessions by environment and id: an environment can claim its own alone."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], Session] = {}

    def enter(self, environment: str, session_id: str, now_s: float) -> Session:
        """The session of a call that is about to be made."""
        session = self._sessions.setdefault((environment, session_id), Session(now_s))
        session.live += 1
        return session

    @property
    def live_count(self) -> int:
        """Model calls that wait for an answer."""
        return sum(session.live for session in self._sessions.values())

    def take(self, environment: str, session_id: str) -> Session | None:
        """Claim a session, once."""
        return self._sessions.pop((environment, session_id), None)

    def forgive(self, environment: str) -> None:
        """Forget what an environment's rollouts called before its runner was lost: they cannot claim it any more, and it is
        on no bill."""
        for key in [key for key in self._sessions if key[0] == environment]:
            del self._sessions[key]

    def unclaimed(self, before_s: float) -> dict[tuple[str, str], Session]:
        """Take the idle sessions opened before `before_s`: no rollout that could have claimed them is left."""
        old = {key: value for key, value in self._sessions.items() if value.opened_s < before_s and not value.live}
        for key in old:
            del self._sessions[key]
        return old

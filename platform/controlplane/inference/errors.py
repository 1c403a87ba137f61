"""How the gateway fails, in OpenAI's terms (`core.problems` spells them)."""

from controlplane.core.error_codes import CODES
from controlplane.core.errors import ApiError, FieldProblem, NotFound, RateLimited, Unavailable

RETRY_AFTER_S = 2


class NotDeployed(NotFound):
    """The caller's own adapter exists but no engine is meant to serve it."""

    code = "model_not_deployed"

    def __init__(self, name: str) -> None:
        super().__init__(f"the model '{name}' is not deployed", hint="Deploy it: `prime deployments create ADAPTER_ID`.")


class TooManyAtOnce(RateLimited):
    def __init__(self, limit: int) -> None:
        super().__init__(f"the team has {limit} requests in flight, which is the limit", retry_after_s=1)


class EngineAway(Unavailable):
    """No engine answers: down, saturated, or without the adapter. The same request may succeed soon."""

    code = "engine_unavailable"

    def __init__(self, detail: str = "the model's engine is not available; try again shortly") -> None:
        super().__init__(detail, hint="Retry with backoff.", retry_after_s=RETRY_AFTER_S)


class WrongWeights(Unavailable):
    """An engine answered with other weights than were asked for. The answer is withheld."""

    code = "adapter_mismatch"

    def __init__(self) -> None:
        super().__init__(
            "the engine answered with other weights than this adapter's; nothing was billed", retry_after_s=RETRY_AFTER_S
        )


class EngineRejects(ApiError):
    """The engine finds the request itself wrong; its reason is passed on."""

    status = 400
    code = "invalid_request"

    def __init__(self, message: str, *, code: str | None, param: str | None) -> None:
        super().__init__(message, code=code if code in CODES else None)
        self.problems = [FieldProblem(("body", param), message)] if param else []


class ContextExceeded(EngineRejects):
    """Prompt and wanted answer are longer than the model's context. OpenAI's clients know this one by its code."""

    code = "context_length_exceeded"

"""Every refusal of the engine, with its HTTP status and OpenAI's error fields. Knows no HTTP framework."""


class EngineError(Exception):
    """A request that the engine does not serve. `message` tells the caller what to do; `param` names the field at fault."""

    status = 500
    type = "server_error"
    code = "internal_error"

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None):
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code or self.code

    def body(self) -> dict[str, dict[str, str | None]]:
        return {"error": {"message": self.message, "type": self.type, "code": self.code, "param": self.param}}


class BadRequest(EngineError):
    status, type, code = 400, "invalid_request_error", "invalid_value"


class Unauthorized(EngineError):
    status, type, code = 401, "authentication_error", "invalid_api_key"


class ModelNotFound(EngineError):
    status, type, code = 404, "invalid_request_error", "model_not_found"


class RouteNotFound(EngineError):
    status, type, code = 404, "invalid_request_error", "route_not_found"


class InvalidAdapter(EngineError):
    """The files of an adapter cannot be served. The engine keeps serving everything else."""

    status, type, code = 400, "invalid_request_error", "invalid_adapter"


class AdapterFilesMissing(InvalidAdapter):
    status, code = 404, "adapter_not_found"


class NameTaken(EngineError):
    status, type, code = 409, "invalid_request_error", "name_taken"


class BodyTooLarge(EngineError):
    status, type, code = 413, "invalid_request_error", "body_too_large"


class Saturated(EngineError):
    status, type, code = 503, "server_error", "saturated"


class EngineStopped(EngineError):
    status, type, code = 503, "server_error", "engine_stopped"


class DeadlineExceeded(EngineError):
    status, type, code = 504, "server_error", "deadline_exceeded"


class NonFiniteOutput(EngineError):
    """This adapter (or prompt) produced logits that are no numbers; other rows of the batch are not affected."""

    status, type, code = 500, "server_error", "non_finite_output"

"""The base of every view of the API: limits are counted, and a POST with an `Idempotency-Key` has one effect.

Knows the order of these steps. Refuses to know actors beyond what they are counted by. A module of its own: DRF imports the
permission class while it defines `APIView`.
"""

from collections.abc import Callable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.core import idempotency, throttling
from controlplane.core.declarations import PUBLIC, Declarations


class ApiView(Declarations, APIView):
    """A view declares its scope (`Declarations`) and has one method per operation: parse, door, service, render."""

    allowance: throttling.Allowance | None = None
    post: Callable[..., Response]
    """A view of an operation that is no POST has none."""

    def check_throttles(self, request: Request) -> None:
        """DRF's place for limits: the caller is known, nothing has been done."""
        self.allowance = throttling.take_request(_caller(request), throttling.address_of(request.META))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        key = request.headers.get(idempotency.HEADER)
        if key is not None and request.method == "POST" and self.scope != PUBLIC:
            # The handler that DRF calls next.
            vars(self)["post"] = self._once(idempotency.check_key(key), type(self).post)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        if self.allowance is not None:
            for name, value in self.allowance.headers().items():
                response[name] = value
        return super().finalize_response(request, response, *args, **kwargs)

    def _once(self, key: str, post: Callable[..., Response]) -> Callable[..., Response]:
        operation = f"{type(self).__module__}.{type(self).__qualname__}".removeprefix("controlplane.")

        def handler(request: Request, *args: Any, **kwargs: Any) -> Response:
            def respond() -> Response:
                try:
                    return post(self, request, *args, **kwargs)
                except Exception as error:
                    # A refusal becomes its answer here, inside the transaction, which then keeps what the refusal wrote; what
                    # nobody foresaw is raised again and takes everything back.
                    return self.handle_exception(error)

            address = request.get_full_path().rstrip("/")
            asked = idempotency.fingerprint(address, request.data)
            return idempotency.answer_once(
                team_id=_caller(request).team_id, operation=operation, key=key, asked=asked, respond=respond
            )

        return handler


def _caller(request: Request) -> Any:
    """Whom the authentication found: an actor of `teams`, or None. DRF's types know Django's users alone."""
    return request.user

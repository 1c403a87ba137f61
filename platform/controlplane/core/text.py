"""What JSON and addresses may say and nothing behind them can hold: NUL characters, half characters, nesting without end.

PostgreSQL stores no U+0000, and a lone surrogate is no UTF-8. Clients are told which field it was. Leased processes pass on what
tenants and models wrote, so that theirs is replaced instead. Refuses to know any field.
"""

from collections.abc import Callable, Iterator
from typing import IO, Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from controlplane.core.errors import Invalid
from controlplane.core.problems import Problem, respond

DEPTH_MAX = 64
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
Location = tuple[str | int, ...]


def is_encodable(text: str) -> bool:
    """Whether it has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_storable(text: str) -> bool:
    return "\0" not in text and is_encodable(text)


def require_text(body: Any, accepts: Callable[[str], bool] = is_storable) -> None:
    """Raises Invalid naming the first text, or the object with the key, that is not acceptable, or what is nested too deep."""
    for loc, value in _walk(body):
        if len(loc) > DEPTH_MAX:
            raise Invalid(("body", *loc[:1]), f"nested deeper than {DEPTH_MAX}")
        texts = [value] if isinstance(value, str) else value if isinstance(value, dict) else ()
        if not all(accepts(text) for text in texts):
            raise Invalid(("body", *loc), "holds a NUL or half a character, which cannot be stored")


def _walk(body: Any) -> Iterator[tuple[Location, Any]]:
    """Every value with its place. With a stack of its own: the nesting is the sender's choice."""
    waiting: list[tuple[Location, Any]] = [((), body)]
    while waiting:
        loc, value = waiting.pop()
        yield loc, value
        if len(loc) <= DEPTH_MAX and isinstance(value, dict | list):
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            waiting.extend(((*loc, key), one) for key, one in inner)


class ClientJSONParser(JSONParser):
    """Bodies of clients."""

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        data = _parsed(super().parse, stream, media_type, parser_context)
        require_text(data)
        return data


class ProcessJSONParser(JSONParser):
    """Bodies of leased processes: a tenant's text must not stop the report that carries it."""

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Any = None) -> Any:
        data = _parsed(super().parse, stream, media_type, parser_context)
        try:
            require_text(data)
        except Invalid:
            require_text(data, lambda text: True)
            return replaced(data)
        return data


def replaced(value: Any) -> Any:
    """The same with U+FFFD for what cannot be stored. Its depth is known to be bounded."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode().replace("\0", REPLACEMENT)
    if isinstance(value, dict):
        return {replaced(key): replaced(one) for key, one in value.items()}
    return [replaced(one) for one in value] if isinstance(value, list) else value


def _parsed(parse: Callable[..., Any], *args: Any) -> Any:
    try:
        return parse(*args)
    except RecursionError:
        raise ParseError("JSON parse error - nested too deep") from None


class AddressMiddleware:
    """Refuses addresses with a NUL, which no name or id has."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        return self._async_call(request) if iscoroutinefunction(self) else _refusal(request) or self.get_response(request)

    async def _async_call(self, request: HttpRequest) -> Any:
        return _refusal(request) or await self.get_response(request)


def _refusal(request: HttpRequest) -> Any:
    if "\0" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
        return respond(request, Problem(400, "bad_request", "The address holds a NUL character."))
    return None

"""Answers are JSON, whatever a client's `Accept` says: a refusal to answer would help nobody."""

from collections.abc import Iterable
from typing import Any

from rest_framework.negotiation import BaseContentNegotiation


class AlwaysJson(BaseContentNegotiation):
    def select_parser(self, request: Any, parsers: Iterable[Any]) -> Any:
        """The parser of the body's own type, or None, which is answered with 415."""
        wanted = (request.content_type or "").partition(";")[0].strip()
        return next((parser for parser in parsers if parser.media_type == wanted), None)

    def select_renderer(self, request: Any, renderers: Iterable[Any], format_suffix: str | None = None) -> tuple[Any, str]:
        first = next(iter(renderers))
        return first, first.media_type

"""Two ways to page, each with a limit: the public client's limit and offset, and our own cursors.

Knows querysets ordered newest first, and lists in an order of their own. Refuses to know what a row is: callers
render it.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar

from django.core.signing import BadSignature, Signer
from django.db.models import Model, Q, QuerySet
from pydantic import Field

from controlplane.core.errors import Invalid
from controlplane.core.schemas import Query

PAGE_MAX = 1000
T = TypeVar("T")
OFFSET_MAX = 10**9
"""Of rows or pages: far behind every end, and within what the database counts with."""


class OffsetQuery(Query):
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 100
    offset: Annotated[int, Field(ge=0, le=OFFSET_MAX)] = 0


class CursorQuery(Query):
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 50
    cursor: str = ""


def offset_page(rows: QuerySet[Any], query: OffsetQuery, render: Callable[[Any], Any]) -> dict[str, Any]:
    """`{"data", "total_count", "offset", "limit"}`, as the wire has it."""
    page = rows[query.offset : query.offset + query.limit]
    return {"data": [render(row) for row in page], "total_count": rows.count(), "offset": query.offset, "limit": query.limit}


def cursor_page(rows: QuerySet[Any], query: CursorQuery, render: Callable[[Any], Any]) -> dict[str, Any]:
    """`{"items", "next_cursor"}`, newest first by (created_at, id): stable while rows are added. `next_cursor` null ends it.

    Cursors are signed for their list: one that was changed, or that another list gave out, is refused by name.
    """
    signer = Signer(salt=f"cursor:{rows.model._meta.label}")
    if query.cursor:
        created_at, row_id = _decode(query.cursor, signer)
        rows = rows.filter(Q(created_at__lt=created_at) | Q(created_at=created_at, id__lt=row_id))
    page = list(rows.order_by("-created_at", "-id")[: query.limit + 1])
    shown = page[: query.limit]
    return {
        "items": [render(row) for row in shown],
        "next_cursor": _encode(shown[-1], signer) if len(page) > query.limit else None,
    }


def list_page(rows: Sequence[T], query: CursorQuery, key: Callable[[T], str], *, of: str) -> tuple[list[T], str | None]:
    """(rows of the page, cursor of the next or None). `key` names a row inside the list, `of` names the list: a cursor of another
    one, or of a row that has left this one meanwhile, is refused by name."""
    signer, start = Signer(salt=f"cursor:{of}"), 0
    if query.cursor:
        try:
            after = signer.unsign_object(query.cursor)
        except (BadSignature, ValueError):
            raise _refused() from None
        start = next((index for index, row in enumerate(rows, start=1) if key(row) == after), 0)
        if start == 0:
            raise Invalid(("query", "cursor"), "the list has changed since; begin again without a cursor")
    page = list(rows[start : start + query.limit])
    return page, signer.sign_object(key(page[-1])) if start + query.limit < len(rows) else None


def _refused() -> Invalid:
    return Invalid(("query", "cursor"), "not a cursor that a page of this list gave out")


def _encode(row: Model, signer: Signer) -> str:
    return signer.sign_object([row.created_at.isoformat(), row.pk])  # type: ignore[attr-defined]


def _decode(cursor: str, signer: Signer) -> tuple[datetime, str]:
    try:
        created_at, row_id = signer.unsign_object(cursor)
    except (BadSignature, ValueError):
        raise _refused() from None
    return datetime.fromisoformat(created_at), row_id

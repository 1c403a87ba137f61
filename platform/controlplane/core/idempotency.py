"""`Idempotency-Key`: a POST that is sent again has one effect and gets the same answer.

The effect and the kept answer are one transaction, so that there is never one without the other, whenever a process dies. While
the first request is at work an advisory lock turns its duplicates away at once; no thread waits. Only successes are kept: a
refusal has made nothing, and the key is free for the corrected request. Answers may hold a secret (a new key), so they are
sealed. Refuses to know what an operation does.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from controlplane.core.clock import DatabaseNow
from controlplane.core.errors import Conflict, Invalid
from controlplane.core.models import IdempotentAnswer
from controlplane.core.sealing import seal, unseal
from controlplane.core.tenancy import acting_for

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
KEPT_FOR = timedelta(hours=24)
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


def check_key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise Invalid(("header", HEADER), "1 to 255 visible ASCII characters")
    return key


def fingerprint(address: str, body: Any) -> str:
    """HMAC-SHA-256 of what was asked: a body may hold a secret, whose plain digest would let it be guessed. Two spellings of one
    JSON body are the same request."""
    asked = f"{address}\n{json.dumps(body, sort_keys=True)}"
    return hmac.new(settings.SECRET_KEY.encode(), asked.encode(), hashlib.sha256).hexdigest()


def answer_once(*, team_id: str, operation: str, key: str, asked: str, respond: Callable[[], Response]) -> Response:
    """The kept answer of the first request with this key, or that of `respond`.

    Raises Invalid where the key came with another request, Conflict while the first one is still at work.
    """
    with transaction.atomic():
        _lock(team_id, operation, key)
        with acting_for(team_id):
            kept = _kept(team_id, operation, key)
        if kept is not None:
            return _replay(kept, asked)
        response = respond()
        if response.status_code < 300:
            with acting_for(team_id):
                _keep(team_id, operation, key, asked, response)
    return response


def sweep() -> int:
    """Remove answers that are kept no longer."""
    removed, _ = IdempotentAnswer.objects.filter(created_at__lte=DatabaseNow() - KEPT_FOR).delete()
    return removed


def _lock(team_id: str, operation: str, key: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [f"{team_id}\n{operation}\n{key}"])
        (is_ours,) = cursor.fetchone()
    if not is_ours:
        raise Conflict("The first request with this Idempotency-Key is still at work.", code="idempotency_in_progress",
                       hint="Send it again in a moment.", retry_after_s=1)  # fmt: skip


def _kept(team_id: str, operation: str, key: str) -> IdempotentAnswer | None:
    since = DatabaseNow() - KEPT_FOR
    return IdempotentAnswer.objects.filter(team_id=team_id, operation=operation, key=key, created_at__gt=since).first()


def _replay(kept: IdempotentAnswer, asked: str) -> Response:
    if kept.request_sha256 != asked:
        raise Invalid(("header", HEADER), "this key was used for another request", code="idempotency_mismatch",
                      hint="Use a new key for a new request.")  # fmt: skip
    body = unseal(kept.sealed_body)["body"]
    return Response(json.loads(body) if body else None, status=kept.status, headers={REPLAYED: "true"})


def _keep(team_id: str, operation: str, key: str, asked: str, response: Response) -> None:
    body = "" if response.data is None else JSONRenderer().render(response.data).decode()
    IdempotentAnswer.objects.update_or_create(
        team_id=team_id,
        operation=operation,
        key=key,
        defaults={
            "request_sha256": asked,
            "status": response.status_code,
            "sealed_body": seal({"body": body}),
            "created_at": DatabaseNow(),
        },
    )

"""PostgreSQL connections that carry the scope of `controlplane.core.tenancy` to row-level security.

Before a query the wanted scope is compared with the one this connection last announced, and announced anew when it differs: one
extra round trip per change, none otherwise. The settings live as long as the session, so a pooler in front of PostgreSQL must
pool sessions, not transactions.
"""

from collections.abc import Callable
from typing import Any

from django.db.backends.postgresql import base

from controlplane.core import tenancy

_ANNOUNCE = "SELECT set_config('rootstock.team_id', %s, false), set_config('rootstock.scope', %s, false)"
# Sent inside a transaction that may have failed, where only these are allowed.
_TRANSACTION_CONTROL = ("ROLLBACK", "SAVEPOINT", "RELEASE")


class DatabaseWrapper(base.DatabaseWrapper):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute_wrappers.append(self._with_scope)
        self._announced: tenancy.Scope | None = None

    def init_connection_state(self) -> None:
        self._announced = None
        super().init_connection_state()

    def _rollback(self) -> None:
        # PostgreSQL takes back settings made inside the transaction; what holds now is not worth tracking.
        self._announced = None
        super()._rollback()  # type: ignore[misc]

    def _savepoint_rollback(self, sid: str) -> None:
        self._announced = None
        super()._savepoint_rollback(sid)  # type: ignore[misc]

    def _with_scope(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
        wanted = tenancy.current_scope()
        if wanted != self._announced and not str(sql).startswith(_TRANSACTION_CONTROL):
            with self.wrap_database_errors, self.connection.cursor() as cursor:
                cursor.execute(_ANNOUNCE, [wanted.team_id, "system" if wanted.system else ""])
            self._announced = wanted
        return execute(sql, params, many, context)

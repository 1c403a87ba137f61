"""Row-level security as a migration operation: every table with a team gets it in the migration that creates the table.

Knows the policies. Refuses to know which teams exist. The owner is subject to them too (FORCE), unless it is a superuser.
"""

from typing import Any

from django.db.migrations.operations.base import Operation, OperationCategory

_SYSTEM = "(SELECT current_setting('rootstock.scope', true)) = 'system'"


class EnableRowSecurity(Operation):
    """Rows of `table` are visible to, and writable by, their own team and the system scope.

    `using` replaces the condition "the row is the current team's" for tables whose team column has another name.
    `public_when`, an SQL condition on the row, lets every scope read such rows (a public environment); it never lets them write.
    """

    reversible = True
    reduces_to_sql = True
    category = OperationCategory.SQL

    def __init__(self, table: str, using: str = "", public_when: str = "") -> None:
        self.table = table
        self.using = using or "team_id = (SELECT current_setting('rootstock.team_id', true))"
        self.public_when = public_when

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [self.table], {"using": self.using, "public_when": self.public_when}

    def state_forwards(self, app_label: str, state: Any) -> None:
        """The models do not change."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        for statement in self.statements():
            schema_editor.execute(statement, None)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        for policy in ("tenant", "public_read"):
            schema_editor.execute(f'DROP POLICY IF EXISTS {policy} ON "{self.table}"')
        schema_editor.execute(f'ALTER TABLE "{self.table}" NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY')

    def describe(self) -> str:
        return f"Enable row-level security on {self.table}"

    def statements(self) -> list[str]:
        own = f"({_SYSTEM}) OR ({self.using})"
        made = [
            f'ALTER TABLE "{self.table}" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY',
            f'CREATE POLICY tenant ON "{self.table}" USING ({own}) WITH CHECK ({own})',
        ]
        if self.public_when:
            made.append(f'CREATE POLICY public_read ON "{self.table}" FOR SELECT USING ({self.public_when})')
        return made

"""Migration operations that take rights on a table away: append-only history, and tables that only the owner writes.

Knows triggers and grants. Refuses to know role names: whoever is granted something and is not the owner loses it.
"""

from typing import Any

from django.db.migrations.operations.base import Operation, OperationCategory

_REVOKE = """
DO $$ DECLARE grantee_name text; BEGIN
  FOR grantee_name IN SELECT DISTINCT grantee FROM information_schema.role_table_grants
    WHERE table_schema = 'public' AND table_name = '{table}' AND grantee NOT IN ('PUBLIC', current_user) LOOP
    EXECUTE format('REVOKE {privileges} ON "{table}" FROM %I', grantee_name);
  END LOOP;
END $$
"""


class _TableRule(Operation):
    reversible = True
    reduces_to_sql = True
    category = OperationCategory.SQL

    def __init__(self, table: str) -> None:
        self.table = table

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return self.__class__.__name__, [self.table], {}

    def state_forwards(self, app_label: str, state: Any) -> None:
        """The models do not change."""


class AppendOnly(_TableRule):
    """Rows are added and never changed or removed, by anybody: rights for the application, a trigger for everybody else."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        schema_editor.execute(_REVOKE.format(table=self.table, privileges="UPDATE, DELETE, TRUNCATE"), None)
        schema_editor.execute(
            f'CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON "{self.table}" '
            "FOR EACH STATEMENT EXECUTE FUNCTION rootstock_refuse_change()"
        )

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        schema_editor.execute(f'DROP TRIGGER append_only ON "{self.table}"')

    def describe(self) -> str:
        return f"Make {self.table} append-only"


class OwnerWrites(_TableRule):
    """The application's role may read the table and never write it."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        schema_editor.execute(_REVOKE.format(table=self.table, privileges="INSERT, UPDATE, DELETE, TRUNCATE"), None)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Rights that were taken are given back by `bootstrap_database`, which knows the role."""

    def describe(self) -> str:
        return f"Let only the owner write {self.table}"

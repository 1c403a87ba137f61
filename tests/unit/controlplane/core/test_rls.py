"""The statements of row-level security. That they work is tested on a database."""

from controlplane.core.rls import EnableRowSecurity


def test_a_public_condition_lets_read_and_never_write():
    statements = EnableRowSecurity("hub_environment", public_when="visibility = 'PUBLIC'").statements()
    assert len(statements) == 3
    assert "FOR SELECT" in statements[2] and "WITH CHECK" not in statements[2]
    assert "PUBLIC" not in statements[1] and "FORCE ROW LEVEL SECURITY" in statements[0]


def test_it_survives_being_written_into_a_migration():
    made = EnableRowSecurity("a", using="owner_id = 1", public_when="true")
    _, args, kwargs = made.deconstruct()
    assert EnableRowSecurity(*args, **kwargs).statements() == made.statements()

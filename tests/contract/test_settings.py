"""The variables: documented as declared, and all named at once when they are missing."""

import pytest

from controlplane.settings.env import Environment, SettingsError, document
from tests.fixtures.places import REPOSITORY

GOOD = {
    "DATABASE_URL": "postgresql://app@/db?host=/run/pg",
    "BROKER_URL": "redis://127.0.0.1:6379/0",
    "ROOTSTOCK_OBJECT_STORE_URL": "file:///srv/objects",
    "ROOTSTOCK_SECRET_KEY": "s" * 40,
    "ROOTSTOCK_PUBLIC_ORIGIN": "https://lab.example.com",
}


def test_the_document_is_the_code():
    assert (REPOSITORY / "docs" / "settings.md").read_text() == document(), "run `manage.py document_settings`"


def test_all_missing_variables_are_named_together():
    with pytest.raises(SettingsError) as raised:
        Environment.read({})
    assert all(name in str(raised.value) for name in GOOD)


def test_a_wrong_value_is_named_and_not_shown():
    with pytest.raises(SettingsError) as raised:
        Environment.read({**GOOD, "ROOTSTOCK_SECRET_KEY": "tooshort", "DATABASE_URL": "mysql://secret@host/db"})
    assert "ROOTSTOCK_SECRET_KEY" in str(raised.value) and "DATABASE_URL" in str(raised.value)
    assert "tooshort" not in str(raised.value) and "secret@host" not in str(raised.value)


def test_an_empty_variable_is_missing():
    with pytest.raises(SettingsError, match="BROKER_URL"):
        Environment.read({**GOOD, "BROKER_URL": ""})


def test_every_variable_has_one_name_and_a_meaning():
    names = [field.alias for field in Environment.model_fields.values()]
    assert len(names) == len(set(names))
    assert all(field.description for field in Environment.model_fields.values())

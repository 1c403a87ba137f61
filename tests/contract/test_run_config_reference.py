"""The page of the run configuration is the code's own description, and every field has a meaning."""

from tests.fixtures.places import REPOSITORY
from trainer.contracts.reference import document, rows
from trainer.contracts.run_config import RunConfig


def test_the_page_is_the_code():
    assert (REPOSITORY / "docs" / "run-config.md").read_text() == document(), "run `python -m trainer.contracts.reference`"


def test_every_field_has_a_meaning():
    assert [row.path for row in rows(RunConfig) if not row.meaning] == []


def test_limits_and_defaults_are_the_fields_own():
    found = {row.path: row for row in rows(RunConfig)}
    assert found["lora_rank"][1:4] == ("whole number", "≥ 1, ≤ 256", "`8`")
    assert found["environments.N.ratio"].limits == "> 0"
    assert found["model.name"].default == "must be given"


def test_a_table_among_several_is_spelled_by_its_number_or_its_name():
    paths = {row.path for row in rows(RunConfig)}
    assert {"environments.N.group_rewards.N.weight", "environments.N.seats.<name>.temperature"} <= paths
    assert "environments.N.seats.<name>.model.…" in paths


def test_a_row_is_one_line_and_names_only_limits_that_there_are():
    found = list(rows(RunConfig))
    assert [row.path for row in found if "\n" in row.meaning] == []
    assert [row.path for row in found if "None" in row.limits] == []

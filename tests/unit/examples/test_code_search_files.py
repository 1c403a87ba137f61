"""What can be asked of the library, and what looking into it says."""

import pytest

from tests.factories.example_modules import plain_module

files = plain_module("code_search", "files")


def test_every_task_has_one_right_file_that_grep_finds():
    asked = files.definitions()
    assert len({name for name, _ in asked}) == len(asked) == 21
    for name, file in asked:
        assert any(line.startswith(f"{file}:") for line in files.grep(name).splitlines())


def test_looking_answers_in_words_whatever_is_asked():
    assert files.grep("vat").splitlines()[0] == "pricing.py:3: VAT = 0.19"
    assert files.grep("nothing like it") == "No line holds it."
    assert files.grep("") == files.grep("x" * 81) == "Say 1 to 80 characters."
    assert len(files.grep("e").splitlines()) == files.LINES_MAX
    assert files.read(" pricing.py ").startswith('"""What an order costs')
    assert "There are: geometry.py" in files.read("../secrets")


@pytest.mark.parametrize(
    ("reply", "right"),
    [("pricing.py", True), ("It is in pricing.py.", True), ("pricing.py or mailer.py", False), ("pricing", False)],
)
def test_a_reply_names_one_file(reply, right):
    assert files.names_file(reply, "pricing.py") is right

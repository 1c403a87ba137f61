"""What a trial's words may hold when they are published."""

from pathlib import Path

from tests.fixtures.live_stack import Person
from tests.verifiers_examples.trial import plain

SOMEBODY = Person(Path("home"), "http://localhost", "a@example.org", "", "", "ada")


def test_folders_go_and_addresses_stay():
    said = "✗ ada/wordle: looked in '/var/lib/data/words'\n see https://example.org/data/words.html"
    assert plain(said, SOMEBODY) == "wordle: looked in '…/words' see https://example.org/data/words.html"

"""A dataset by browser alone: nothing there yet, a file that is refused line by line, one that is kept, its report, its end."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.browser.accessibility import axe_violations

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
GOOD = b'{"prompt": "1+1?", "completion": "sum 2"}\n'
FILE = {"name": "Sums of mine.jsonl", "mimeType": "application/jsonl", "buffer": GOOD + b"not json\n" + GOOD}


def test_a_file_is_refused_by_line_then_kept_reported_and_deleted(visit, make_person) -> None:
    window = visit(make_person())
    page = window.open("/datasets")
    expect(page.get_by_text("prime datasets push")).to_be_visible()

    window.watch.expect(422, "/api/v1/datasets/")
    page.get_by_label("File", exact=True).set_input_files(FILE)
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("2 of 3 rows are kept, 1 dropped")
    dropped = page.get_by_role("table", name="Lines that were left out")
    expect(dropped.get_by_role("row").nth(1)).to_have_text(re.compile(r"^2\s*not JSON"))

    page.get_by_label("Rows that may be left out, %").fill("50")
    page.get_by_role("button", name="Upload", exact=True).click()
    row = page.get_by_role("table", name="Datasets").get_by_role("row", name="sums-of-mine")
    expect(row).to_contain_text("chat")
    expect(page.get_by_text("less some of its rows")).to_be_visible()

    row.get_by_role("button", name="Report").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 of 3 rows are kept, 1 left out")
    assert axe_violations(page) == []
    dialog.get_by_role("button", name="Close").click()

    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Your team has no dataset.")).to_be_visible()

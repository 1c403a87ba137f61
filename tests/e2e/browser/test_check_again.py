"""A release that failed is checked once more by a click: the button waits, and the page tells when the newest check ended."""

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import deeds

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
CHECK_DEADLINE_MS = 150_000


def test_a_click_has_the_release_checked_again_and_the_page_tells_of_the_newest_check(visit, make_person) -> None:
    person = make_person()
    environment = deeds.push(person, "broken_import", passes=False)
    page = visit(person).open(f"/environments/{environment}?tab=check")
    ended = page.get_by_role("tabpanel").locator("time")
    before = ended.get_attribute("datetime")
    assert before is not None and page.get_by_text("It is being checked once more.").count() == 0

    again = page.get_by_role("button", name="Check again")
    again.click()
    expect(again).to_be_disabled()
    expect(ended).not_to_have_attribute("datetime", before, timeout=CHECK_DEADLINE_MS)
    expect(again).to_be_enabled()
    expect(page.get_by_role("alert")).to_contain_text("broken-import does not load")
    newest = deeds.ask(person, f"/environmentshub/{environment}/@latest/badge")["data"]
    assert ended.get_attribute("datetime") == newest["checked_at"] > before

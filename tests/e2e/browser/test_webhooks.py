"""Webhooks by browser alone: an address that is refused, one that is kept with its secret, a test that cannot arrive, the end."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.browser.accessibility import axe_violations

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
# Kept for documentation: it has no address, so nothing is ever sent.
ADDRESS = "https://hooks.example.invalid/rootstock"


def test_a_webhook_is_made_tried_and_deleted(visit, make_person) -> None:
    window = visit(make_person())
    page = window.open("/team?tab=webhooks")
    expect(page.get_by_text("No webhooks yet.")).to_be_visible()

    window.watch.expect(422, "/api/v1/webhooks")
    page.get_by_label("Address").fill("https://127.0.0.1/hook")
    page.get_by_role("button", name="Make a webhook").click()
    expect(page.get_by_text("inside this installation's own network")).to_be_visible()

    page.get_by_label("Address").fill(ADDRESS)
    page.get_by_label("run.failed").check()
    page.get_by_role("button", name="Make a webhook").click()
    expect(page.get_by_text(re.compile("^whsec_"))).to_be_visible()
    row = page.get_by_role("table", name="Webhooks of the team").get_by_role("row", name=ADDRESS)
    expect(row).to_contain_text("run.failed")

    row.get_by_role("button", name="Deliveries").click()
    page.get_by_role("button", name="Send a test").click()
    delivery = page.get_by_role("table", name="Deliveries").get_by_role("row", name="webhook.test")
    expect(delivery).to_contain_text("pending")
    expect(delivery).to_contain_text("the host's name has no address", timeout=20_000)
    delivery.get_by_role("button", name="Look").click()
    expect(page.get_by_role("dialog")).to_contain_text("webhook_id")
    assert axe_violations(page) == []
    page.get_by_role("dialog").get_by_role("button", name="Close").click()

    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No webhooks yet.")).to_be_visible()

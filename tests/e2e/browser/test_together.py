"""What people do with each other's environments, clicked: publish an evaluation, see it ranked, fork, invite."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser.world import World

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]


def test_an_evaluation_is_published_ranked_for_others_and_taken_back(visit, world: World, make_person) -> None:
    """The leaderboard leads to it; its log and configuration stay the team's."""
    own = visit(world.person).open(f"/evaluations/{world.evaluation_id}")
    _answer(own, "Publish")
    expect(own.get_by_text("published", exact=True)).to_be_visible()

    window = visit(make_person())
    page = window.open(f"/environments/{world.environment}?tab=results")
    row = page.get_by_role("table", name="Models by mean reward").get_by_role("row").filter(has_text=world.person.owner)
    expect(row).to_contain_text("here")
    row.get_by_role("link", name="tiny").click()
    expect(page).to_have_url(re.compile(world.evaluation_id))
    expect(page.get_by_text("published by another team")).to_be_visible()
    expect(page.get_by_role("tab")).to_have_text(["Samples"])

    _answer(own, "Take back")
    expect(own.get_by_role("button", name="Publish")).to_be_visible()
    page = window.open(f"/environments/{world.environment}?tab=results")
    expect(page.get_by_text("nobody has published an evaluation")).to_be_visible()


def test_a_stranger_forks_is_invited_and_turned_away_again(visit, world: World, make_person) -> None:
    guest = make_person()
    theirs = visit(guest).open(f"/environments/{world.environment}")
    expect(theirs.get_by_role("tab", name="People")).to_have_count(0)
    _answer(theirs, "Fork")
    expect(theirs).to_have_url(re.compile(f"/environments/{guest.owner}/digit-sum"))
    expect(theirs.get_by_text(f"forked from {world.environment}@")).to_be_visible()

    own = visit(world.person).open(f"/environments/{world.environment}?tab=people")
    own.get_by_label("User", exact=True).fill(guest.owner)
    own.get_by_role("button", name="Invite", exact=True).click()
    row = own.get_by_role("table", name="Collaborators").get_by_role("row").filter(has_text=guest.owner)
    expect(row).to_be_visible()
    theirs.goto(f"{theirs.url.partition('/environments/')[0]}/environments/{world.environment}")
    expect(theirs.get_by_role("tab", name="People")).to_be_visible()
    row.get_by_role("button", name="Remove").click()
    own.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(own.get_by_text("Nobody beside the team.")).to_be_visible()


def _answer(page: Page, label: str) -> None:
    """Press a button that asks first, and agree."""
    page.get_by_role("button", name=label, exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name=label, exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)

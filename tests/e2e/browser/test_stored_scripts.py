"""Whatever a tenant writes is shown as text: names, README, description, prompts, logs. None of it runs or asks another host."""

import pytest
from playwright.sync_api import expect

from tests.e2e.browser.hostile import CORPUS, executable_content
from tests.e2e.browser.world import HostileWorld

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]

PLACES = (
    "/",
    "/environments",
    "/environments/{world.environment}",
    "/runs",
    "/runs/{world.run_id}",
    "/evaluations",
    "/evaluations/{world.evaluation_id}",
    "/models",
    "/billing",
    "/keys",
)


@pytest.mark.gate("R16")
@pytest.mark.parametrize("place", PLACES)
def test_stored_markup_stays_text(visit, hostile_world: HostileWorld, place: str) -> None:
    page = visit(hostile_world.person).open(place.format(world=hostile_world))
    tabs = page.get_by_role("tablist").first.get_by_role("tab")
    for number in range(max(1, tabs.count())):
        if tabs.count():
            tabs.nth(number).click()
            expect(page.locator(".skeleton")).to_have_count(0)
        assert executable_content(page) == []


@pytest.mark.parametrize(
    "place", ["/environments/{world.environment}", "/runs/{world.run_id}", "/runs", "/keys", "/environments"]
)
def test_the_reader_sees_the_markup_that_was_written(visit, hostile_world: HostileWorld, place: str) -> None:
    page = visit(hostile_world.person).open(place.format(world=hostile_world))
    expect(page.get_by_text(CORPUS[1]).first).to_be_visible()


def test_the_finder_finds_what_it_looks_for(visit) -> None:
    page = visit().open("/")
    page.evaluate("() => document.body.append(Object.assign(document.createElement('a'), {href: 'javascript:alert(1)'}))")
    assert len(executable_content(page)) == 1

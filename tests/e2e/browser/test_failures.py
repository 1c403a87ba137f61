"""What the dashboard says when something is wrong: nothing there, not yours, broken, unreachable."""

import re

import pytest
from playwright.sync_api import Route, expect

from tests.e2e.browser.world import World

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
NEXT_QUESTION_MS = 60_000
"""However often a page was not answered, it asks again by then."""


def test_a_wrong_address_says_so_and_leads_back(visit, world: World) -> None:
    page = visit(world.person).open("/no/such/page")
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no such page")
    page.get_by_role("main").get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"/$"))


@pytest.mark.parametrize("place", ["/runs/{world.run_id}", "/evaluations/{world.evaluation_id}"])
def test_what_is_another_teams_looks_like_what_does_not_exist(visit, world: World, make_person, place: str) -> None:
    stranger = make_person()
    window = visit(stranger)
    own = place.format(world=world)
    nowhere = re.sub(r"c[a-z0-9]{24}$", "c" + "0" * 24, own)
    window.watch.expect(404, "/api/v1/")
    texts = []
    for path in (own, nowhere):
        alert = window.open(path).get_by_role("alert").first
        expect(alert).to_be_visible()
        texts.append(re.sub(r"c[a-z0-9]{24}", "ID", alert.inner_text()))
    assert texts[0] == texts[1]
    assert world.environment not in window.page.content()


def test_a_failed_run_names_its_cause(visit, world: World) -> None:
    page = visit(world.person).open(f"/runs/{world.failed_run_id}")
    alert = page.get_by_role("alert").first
    expect(alert).to_contain_text("a_module_that_nobody_has")
    expect(alert).to_contain_text("broken_import/tasks.py")


def test_a_failed_check_names_module_and_line(visit, world: World) -> None:
    page = visit(world.person).open(f"/environments/{world.person.owner}/broken-import")
    expect(page.get_by_text("check failed").first).to_be_visible()
    page.get_by_role("tab", name="Check").click()
    expect(page.get_by_text("broken_import/tasks.py, line 2").first).to_be_visible()
    expect(page.locator("pre", has_text="a_module_that_nobody_has").first).to_be_visible()


@pytest.mark.parametrize("kind", ["refused", "gateway page"])
@pytest.mark.parametrize("place", ["/runs", "/environments", "/billing"])
def test_a_server_that_is_away_is_told_and_its_return_noticed(visit, world: World, place: str, kind: str) -> None:
    window = visit(world.person)
    window.context.clock.install()
    page = window.open(place)
    window.watch.expect(502, "/api/v1/")
    answer = _refuse if kind == "refused" else _gateway_page
    with window.watch.outage():
        page.route("**/api/v1/**", answer)
        page.clock.fast_forward(NEXT_QUESTION_MS)
        alert = page.get_by_role("alert").first
        expect(alert).to_contain_text("cannot be reached" if kind == "refused" else "502")
        page.unroute("**/api/v1/**", answer)
        page.clock.fast_forward(NEXT_QUESTION_MS)
        expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_a_session_that_ended_elsewhere_leads_to_the_gate(visit, world: World) -> None:
    window = visit(world.person)
    page = window.open("/runs")
    window.watch.expect(401, "/api/v1/")
    window.context.clear_cookies(name="rootstock_session")
    # The list of environments is open to visitors; the bill is not.
    page.get_by_role("link", name="Billing").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def _refuse(route: Route) -> None:
    route.abort("connectionrefused")


def _gateway_page(route: Route) -> None:
    route.fulfill(status=502, content_type="text/html", body="<html><body><h1>502 Bad Gateway</h1></body></html>")

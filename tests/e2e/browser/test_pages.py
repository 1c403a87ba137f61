"""Every page of the dashboard, for everybody: contrast and names in both themes, a phone's width, a keyboard alone."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser.accessibility import axe_violations, keyboard_faults, overflow_px, walk_tabs
from tests.e2e.browser.world import World
from tests.fixtures.places import REPOSITORY

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

Address = Callable[[World], str]
PAGES: dict[str, Address] = {
    "home": lambda world: "/",
    "environments": lambda world: "/environments",
    "environment": lambda world: f"/environments/{world.environment}",
    "datasets": lambda world: "/datasets",
    "runs": lambda world: "/runs",
    "run": lambda world: f"/runs/{world.run_id}",
    "failed run": lambda world: f"/runs/{world.failed_run_id}",
    "evaluations": lambda world: "/evaluations",
    "evaluation": lambda world: f"/evaluations/{world.evaluation_id}",
    "comparison": lambda world: f"/evaluations/compare?ids={world.evaluation_id},{world.evaluation_id}",
    "models": lambda world: "/models",
    "chat": lambda world: "/chat",
    "billing": lambda world: "/billing",
    "keys": lambda world: "/keys",
    "team": lambda world: "/team",
    "missing": lambda world: "/no/such/page",
}
# Pages of the public client: two of them lead on, the third answers a command that waits.
CLIENT_PAGES = "/dashboard/"
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


def test_no_page_is_left_out(world: World) -> None:
    routes = re.findall(r'<Route path="(/[^"]*)"', (REPOSITORY / "frontend" / "src" / "app.tsx").read_text())
    assert len(routes) > 10
    patterns = [route.removesuffix("/*") for route in routes if not route.startswith(CLIENT_PAGES)]
    shown = [address(world).partition("?")[0] for address in PAGES.values()]
    missing = [one for one in patterns if not any(re.fullmatch(re.sub(r":\w+", "[^/]+", one), path) for path in shown)]
    assert missing == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_readable_in_both_themes_and_fits_a_phone(visit, world: World, name: str) -> None:
    window = visit(world.person)
    page = window.open(PAGES[name](world))
    faults = []
    for view in _tabs_of(page):
        for scheme in ("light", "dark"):
            for size in (DESKTOP, PHONE):
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                page.set_viewport_size(size)
                window.settle()
                where = f"{view}, {scheme}, {size['width']} px"
                faults += [f"{where}: {one}" for one in axe_violations(page)]
                if (wide := overflow_px(page)) > 0:
                    faults.append(f"{where}: {wide} px wider than the window")
        page.set_viewport_size(DESKTOP)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_usable_without_a_mouse(visit, world: World, name: str) -> None:
    page = visit(world.person).open(PAGES[name](world))
    faults = [f"{view}: {one}" for view in _tabs_of(page) for one in keyboard_faults(page)]
    assert not faults, "\n".join(faults)


def test_sign_in_is_readable_fits_and_is_usable_without_a_mouse(visit) -> None:
    window = visit()
    page = window.open("/")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert axe_violations(page) == []
    page.set_viewport_size(PHONE)
    assert overflow_px(page) == 0
    assert keyboard_faults(page) == []


@pytest.mark.parametrize("name", ["environment", "run"])
def test_tabs_follow_the_arrow_keys(visit, world: World, name: str) -> None:
    page = visit(world.person).open(PAGES[name](world))
    tabs = page.get_by_role("tablist").first.get_by_role("tab")
    labels = tabs.all_inner_texts()
    assert walk_tabs(tabs) == labels
    assert len(set(labels)) > 2


def test_a_dialog_takes_the_focus_and_gives_it_back(visit, world: World) -> None:
    page = visit(world.person).open("/keys")
    opener = page.get_by_role("button", name="Revoke").first
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert axe_violations(page) == []
    assert page.evaluate("() => document.querySelector('dialog').contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()


def test_the_menu_of_a_phone_opens_by_keyboard(visit, world: World) -> None:
    page = visit(world.person, viewport=PHONE).open("/")
    menu = page.get_by_role("button", name="Menu")
    expect(menu).to_have_attribute("aria-expanded", "false")
    menu.focus()
    page.keyboard.press("Enter")
    link = page.get_by_role("navigation", name="Main").get_by_role("link", name="Billing")
    expect(link).to_be_visible()
    link.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Billing")).to_be_visible()


def test_a_chosen_theme_outlasts_a_reload(visit, world: World) -> None:
    window = visit(world.person)
    page = window.open("/")
    light = _ground(page)
    page.get_by_role("button", name="Dark", exact=True).click()
    dark = _ground(page)
    assert dark != light
    page.reload()
    window.settle()
    assert _ground(page) == dark


def _ground(page: Page) -> str:
    colour: str = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    return colour


def _tabs_of(page: Page):
    """Each part of the page: once where it has no tabs, else with every tab of its first list chosen in turn."""
    tabs = page.get_by_role("tablist").first.get_by_role("tab")
    if tabs.count() == 0:
        yield "page"
        return
    for label in tabs.all_inner_texts():
        page.get_by_role("tab", name=label, exact=True).click()
        expect(page.locator(".skeleton")).to_have_count(0)
        yield label

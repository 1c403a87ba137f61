"""What browser tests ask for: Chromium, a page that tells of every complaint, and somebody signed in on the real stack."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.browser.chromium import STEP_DEADLINE_S, find_chromium, running_chromium, sign_in_by_cookie
from tests.e2e.browser.watch import Watch
from tests.e2e.browser.world import HostileWorld, World, make_hostile_world, make_world
from tests.fixtures.live_stack import LiveStack, Person


@dataclass(frozen=True)
class Visit:
    """One person's browser window."""

    page: Page
    context: BrowserContext
    watch: Watch
    origin: str

    def open(self, path: str) -> Page:
        """The page at that address, once it shows what it has asked for."""
        self.page.goto(self.origin + path)
        self.settle()
        return self.page

    def settle(self) -> None:
        expect(self.page.get_by_role("heading", level=1).first).to_be_attached()
        expect(self.page.locator(".skeleton")).to_have_count(0)


Visitor = Callable[..., Visit]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for each module: Playwright's loop must be gone before another module's asynchronous tests begin."""
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium: install the system's chromium package or set ROOTSTOCK_TEST_CHROMIUM")
    with running_chromium(path) as running:
        yield running


@pytest.fixture
def open_window(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """`open_window(origin, **context options)`. Every window must have been quiet when the test ends."""
    windows: list[Visit] = []

    def make(origin: str, **options: Any) -> Visit:
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 800}} | options))
        context.set_default_timeout(STEP_DEADLINE_S * 1000)
        watch = Watch()
        watch.attach(context)
        windows.append(Visit(context.new_page(), context, watch, origin))
        return windows[-1]

    yield make
    for window in windows:
        window.context.close()
    for window in windows:
        window.watch.assert_quiet()


@pytest.fixture(scope="module")
def session_of(browser: Browser) -> Callable[[Person], Any]:
    """A person's cookies, signed in once: the number of sign-ins from one address is limited."""

    @cache
    def sign_in(person: Person) -> Any:
        context = browser.new_context()
        cookies = sign_in_by_cookie(context, person)
        context.close()
        return cookies

    return sign_in


@pytest.fixture
def visit(open_window: Visitor, session_of: Callable[[Person], Any], live_stack: LiveStack) -> Visitor:
    """`visit(person=None, **context options)`: a window on the stack, signed in as that person."""

    def make(person: Person | None = None, **options: Any) -> Visit:
        state = {} if person is None else {"storage_state": session_of(person)}
        return open_window(live_stack.origin, **(state | options))

    return make


@pytest.fixture(scope="session")
def world(make_person: Callable[[], Person]) -> World:
    return make_world(make_person())


@pytest.fixture(scope="session")
def hostile_world(make_person: Callable[[], Person]) -> HostileWorld:
    return make_hostile_world(make_person())

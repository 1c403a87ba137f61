"""The watch over the browser itself: what it must not let pass."""

import time

import pytest
from playwright.sync_api import Page, Route

from tests.e2e.browser.chromium import STEP_DEADLINE_S

ORIGIN = "http://dashboard.test"
POLICY = "default-src 'none'; script-src 'self'; img-src data:; connect-src 'self'"


@pytest.fixture
def window(open_window):
    """A window on a server that exists in the browser alone: `/` is a page under a policy, everything else is missing."""
    opened = open_window(ORIGIN)
    opened.context.route("**/*", _answer)
    opened.open("/")
    yield opened
    opened.context.close()
    opened.watch.complaints.clear()


def _answer(route: Route) -> None:
    is_page = route.request.url == f"{ORIGIN}/"
    headers = {"Content-Type": "text/html", "Content-Security-Policy": POLICY}
    head = "<!doctype html><html lang='en'><title>a page</title><link rel='icon' href='data:,'>"
    body = f"{head}<h1>a page</h1><p id='p'>text</p></html>"
    route.fulfill(status=200 if is_page else 404, headers=headers, body=body if is_page else "")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("console.warn('a warning')", "console warning: a warning"),
        ("console.error('an error')", "console error: an error"),
        ("setTimeout(() => { throw new Error('thrown') })", "exception: thrown"),
        ("Promise.reject(new Error('rejected'))", "exception: rejected"),
        ("await fetch('/missing')", "answer 404: GET http://dashboard.test/missing"),
        ("setTimeout('1')", "refused by script-src"),
        ("document.body.append(Object.assign(new Image(), {src: 'http://elsewhere.test/x.png'}))", "refused by img-src"),
        ("alert('hello')", "dialog: hello"),
    ],
)
def test_a_complaint_of_the_page_is_seen(window, script: str, told: str) -> None:
    _run(window.page, script)
    deadline = time.monotonic() + STEP_DEADLINE_S
    while not any(told in complaint for complaint in window.watch.complaints):
        assert time.monotonic() < deadline, window.watch.complaints
        _run(window.page, "null")


def test_an_expected_answer_is_no_complaint_and_another_one_still_is(window) -> None:
    window.watch.expect(404, "/missing$")
    _run(window.page, "console.log('said in passing'); await fetch('/missing')")
    window.watch.assert_quiet()
    _run(window.page, "await fetch('/also-missing')")
    assert window.watch.complaints


def _run(page: Page, script: str) -> None:
    """Run it, then let the browser's own tasks behind it happen."""
    page.evaluate(f"async () => {{ {script}; await new Promise((done) => setTimeout(done)) }}")

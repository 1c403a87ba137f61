"""The machine's own Chromium under Playwright. Knows where it is and which flags keep it quiet; refuses to know any page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, StorageState, expect, sync_playwright

from tests.fixtures.live_stack import Person

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Loopback is never asked through a proxy.
    "--no-proxy-server",
)
START_DEADLINE_S = 60.0
STEP_DEADLINE_S = 30.0


def find_chromium() -> str | None:
    """The browser's path: `ROOTSTOCK_TEST_CHROMIUM`, or what the system calls chromium."""
    return os.environ.get("ROOTSTOCK_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def running_chromium(path: str) -> Iterator[Browser]:
    """One browser. Playwright's synchronous side holds the thread's event loop while it lives, so keep it short."""
    expect.set_options(timeout=STEP_DEADLINE_S * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS), timeout=START_DEADLINE_S * 1000)
        try:
            yield browser
        finally:
            browser.close()


def sign_in_by_cookie(context: BrowserContext, person: Person) -> StorageState:
    """The session without the form: most of what is looked at comes after it."""
    account = {"email": person.email, "password": person.password}
    answer = context.request.post(f"{person.origin}/api/v1/auth/sign-in", data=account)
    assert answer.ok, answer.text()
    return context.storage_state()

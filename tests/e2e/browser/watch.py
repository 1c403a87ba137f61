"""Everything that a browser complains about while a page is open: console, exceptions, failed requests, refused content.

A test names what it means to provoke; all else is a fault of the page. Refuses to know what the pages show.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, Response

LOUD = frozenset({"warning", "error", "assert"})
# The browser itself drops requests when it leaves a page.
DROPPED = "net::ERR_ABORTED"
UNREACHABLE = re.compile(r"net::ERR_(CONNECTION_\w+|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING|FAILED|NETWORK_CHANGED)")
# A console of the page's own world: refused content becomes an ordinary error, and a script that should never run is told of.
REPORT_REFUSED = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`refused by ${event.violatedDirective}: ${event.blockedURI}`));
"""


@dataclass
class Watch:
    """The complaints of every page of one browser context."""

    complaints: list[str] = field(default_factory=list)
    _expected: list[tuple[re.Pattern[str], int]] = field(default_factory=list)
    _outage: bool = False

    def attach(self, context: BrowserContext) -> None:
        context.add_init_script(REPORT_REFUSED)
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.complaints.append(f"exception: {error.error}"))
        context.on("requestfailed", self._on_failed)
        context.on("response", self._on_response)
        context.on("page", self._on_page)

    def expect(self, status: int, address: str) -> None:
        """The test provokes this status; `address` is a pattern somewhere in the URL."""
        self._expected.append((re.compile(address), status))

    @contextmanager
    def outage(self) -> Iterator[None]:
        """The server is away on purpose: unreachable is no complaint, everything else still is."""
        self._outage = True
        try:
            yield
        finally:
            self._outage = False

    def assert_quiet(self) -> None:
        assert not self.complaints, "\n".join(self.complaints)

    def _on_page(self, page: Page) -> None:
        # Playwright would close a dialog by itself; nothing of ours opens one, and a stored script's `alert` must be seen.
        page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type not in LOUD:
            return
        address = message.location.get("url", "")
        is_network = message.text.startswith("Failed to load resource")
        if is_network and self._is_expected(address, _status_in(message.text)):
            return
        if self._outage and UNREACHABLE.search(message.text):
            return
        self.complaints.append(f"console {message.type}: {message.text} ({address})")

    def _on_failed(self, request: Request) -> None:
        failure = request.failure or ""
        if failure == DROPPED or (self._outage and UNREACHABLE.search(failure)):
            return
        self.complaints.append(f"request failed: {request.method} {request.url}: {failure}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 400 and not self._is_expected(response.url, response.status):
            self.complaints.append(f"answer {response.status}: {response.request.method} {response.url}")

    def _is_expected(self, address: str, status: int) -> bool:
        return any(pattern.search(address) and status == known for pattern, known in self._expected)


def _status_in(text: str) -> int:
    found = re.search(r"status of (\d{3})", text)
    return int(found[1]) if found else 0

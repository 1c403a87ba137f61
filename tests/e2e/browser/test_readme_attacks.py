"""R16: what READMEs try to run in a real browser, rendered by the server as the page shows them."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from controlplane.hub.readme import readme_html
from tests.e2e.browser.chromium import find_chromium, running_chromium
from tests.e2e.browser.readme_attacks import readmes
from tests.fixtures.gates import Gate

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(120)]
TRAP = "<!doctype html><script>window.count = 0; window.fired = () => { window.count += 1; }</script>"
PROVOKE = """async () => {
  for (const one of document.querySelectorAll("main *")) {
    for (const kind of ["mouseover", "focus", "click", "submit", "toggle"]) {
      if (kind === "click" && one.tagName === "A" && one.protocol !== "javascript:") continue;
      one.dispatchEvent(new Event(kind, { bubbles: true, cancelable: true }));
    }
    if (one.tagName === "A" && one.protocol === "javascript:") one.click();
  }
  await new Promise((done) => setTimeout(done, 0));
  return window.count;
}"""


@pytest.fixture
def chromium() -> Iterator[Browser]:
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium on this machine")
    with running_chromium(path) as browser:
        yield browser


def attacks_that_worked(page: Page, texts: list[str]) -> list[str]:
    """Those that ran something or asked another host."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if not request.url.startswith("about:") else None)
    page.route("**/*", lambda route: route.abort())
    worked = []
    for html in texts:
        asked.clear()
        page.set_content(f"{TRAP}<main>{html}</main>", wait_until="domcontentloaded")
        if page.evaluate(PROVOKE) or any("elsewhere.test" in url for url in asked):
            worked.append(html)
    return worked


@pytest.mark.gate("R16")
def test_no_readme_runs_anything(chromium: Browser, gate: Gate) -> None:
    """R16: 0 of 200 executed."""
    texts = readmes()
    worked = attacks_that_worked(chromium.new_page(), [readme_html(text) for text in texts])
    gate.record(trials=len(texts), violations=len(worked))
    assert len(texts) == 200 and worked == []


def test_the_gate_turns_red_where_nothing_is_cleaned(chromium: Browser) -> None:
    """Unrendered, many of the same texts do run: the trap is set."""
    worked = attacks_that_worked(chromium.new_page(), [text for text in readmes() if text.startswith("<")][:40])
    assert len(worked) >= 8

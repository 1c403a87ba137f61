"""What every page owes to people who see little, use a phone or have no mouse. Refuses to know what a page is about.

axe (from the dashboard's own development dependencies) looks at names, roles and contrast; the rest is pressed and measured.
"""

from functools import cache

from playwright.sync_api import Locator, Page

from tests.fixtures.places import REPOSITORY

AXE = REPOSITORY / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}, "resultTypes": ["violations"]}
RUN_AXE = """(rules) => axe.run(document, rules).then(({violations}) => violations.flatMap(({id, help, nodes}) =>
  nodes.map((node) => `${id}: ${help}: ${node.target.join(" ")}: ${(node.any[0] ?? {}).message ?? ""}`)))"""

# Halfway from one theme to the other, colours belong to neither.
END_TRANSITIONS = (
    """() => document.getAnimations().filter((one) => one instanceof CSSTransition).forEach((one) => one.finish())"""
)

# What is on the page for a keyboard: visible, enabled and in the order. Of a group of radio buttons the browser stops at one.
COLLECT_STOPS = """() => {
  const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")];
  const groups = new Set();
  window.keyboardStops = all.filter((one) => {
    if (one.tabIndex < 0 || one.disabled || !one.checkVisibility({visibilityProperty: true})) return false;
    if (one.type !== "radio") return true;
    const isFirst = !groups.has(one.name);
    groups.add(one.name);
    return isFirst;
  });
  document.activeElement?.blur();
  return window.keyboardStops.length;
}"""
CURRENT_STOP = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const style = getComputedStyle(one);
  const place = one.type === "radio"
    ? window.keyboardStops.findIndex((other) => other.name === one.name) : window.keyboardStops.indexOf(one);
  return {
    place,
    isOutlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1,
    name: `<${one.tagName.toLowerCase()}> ${(one.getAttribute("aria-label") ?? one.textContent ?? "").trim().slice(0, 40)}`,
  };
}"""
NAME_STOPS = """(places) => places.map((place) => window.keyboardStops[place].outerHTML.slice(0, 120))"""


def axe_violations(page: Page) -> list[str]:
    """Broken WCAG 2.1 A and AA rules, one line for each element."""
    page.evaluate(END_TRANSITIONS)
    # Run by the debugger, not by the page: the page's policy lets no foreign script in.
    page.evaluate(_axe())
    found: list[str] = page.evaluate(RUN_AXE, RULES)
    return found


@cache
def _axe() -> str:
    return AXE.read_text()


def overflow_px(page: Page) -> int:
    """By how much the page is wider than its window."""
    width: int = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width


def keyboard_faults(page: Page) -> list[str]:
    """Tab through the whole page: what is never reached, and what does not show that it has the focus."""
    count: int = page.evaluate(COLLECT_STOPS)
    reached: set[int] = set()
    faults: list[str] = []
    # Panes that scroll are stops as well, without being controls.
    for _ in range(2 * count + 20):
        page.keyboard.press("Tab")
        stop = page.evaluate(CURRENT_STOP)
        if stop is None:
            continue
        if stop["place"] in reached and len(reached) == count:
            break
        if not stop["isOutlined"]:
            faults.append(f"no visible focus: {stop['name']}")
        if stop["place"] >= 0:
            reached.add(stop["place"])
    missed = page.evaluate(NAME_STOPS, sorted(set(range(count)) - reached))
    return sorted(set(faults)) + [f"never reached: {name}" for name in missed]


def walk_tabs(tabs: Locator) -> list[str]:
    """Go through a tab list with the arrow keys; the names in the order in which they were selected."""
    tabs.first.click()
    names = []
    for _ in range(tabs.count()):
        selected = tabs.page.locator("[role=tab][aria-selected=true]:focus")
        names.append(selected.inner_text())
        tabs.page.keyboard.press("ArrowRight")
    return names

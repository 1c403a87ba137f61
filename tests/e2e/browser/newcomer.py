"""What a newcomer does in the dashboard, one step at a time, by the names and roles that they see.

Knows the pages' texts. Refuses to know the order of the steps: the walks do.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from playwright.sync_api import Locator, Page, expect

from tests.e2e.browser import deeds
from tests.fixtures.live_stack import Person

RUN_DEADLINE_MS = 120_000


@dataclass
class Newcomer:
    """Somebody in front of the sign-up form, with a home folder for the `prime` command."""

    page: Page
    origin: str
    home: Path
    email: str = field(default_factory=lambda: f"new-{uuid4().hex[:10]}@example.com")
    password: str = field(default_factory=lambda: uuid4().hex)

    def sign_up(self) -> None:
        self.page.goto(self.origin)
        self.page.get_by_role("button", name="Make an account").click()
        self.page.get_by_label("Name", exact=True).fill("Ada")
        self.page.get_by_label("E-mail").fill(self.email)
        self.page.get_by_label("Password").fill(self.password)
        self.page.get_by_role("button", name="Sign up").click()
        expect(self.page.get_by_role("navigation", name="Main")).to_be_visible()

    def go(self, name: str) -> None:
        """Follow the main navigation."""
        self.page.get_by_role("navigation", name="Main").get_by_role("link", name=name, exact=True).click()
        expect(self.page.get_by_role("heading", level=1, name=name)).to_be_visible()

    def make_key(self) -> Person:
        """A key, read from where it is shown once; with it, the person whom the command line knows."""
        self.go("Keys")
        self.page.get_by_label("Name", exact=True).fill("my laptop")
        self.page.get_by_role("button", name="Make a key").click()
        told = self.page.get_by_role("status").filter(has_text="not shown again")
        key = told.locator("code").inner_text()
        expect(self.page.get_by_role("row").filter(has_text="my laptop")).to_contain_text(key[:8])
        person = Person(self.home, self.origin, self.email, self.password, key, owner="")
        slug = deeds.told(person, "whoami")["data"]["slug"]
        return Person(self.home, self.origin, self.email, self.password, key, owner=slug)

    def top_up(self, dollars: int) -> None:
        self.go("Billing")
        self.page.get_by_label(re.compile("amount", re.IGNORECASE)).fill(str(dollars))
        self.page.get_by_role("button", name=re.compile("top up|add", re.IGNORECASE)).click()
        expect(self.page.get_by_text(f"${dollars}.00").first).to_be_visible()

    def see_green(self, environment: str) -> None:
        self.go("Environments")
        self.page.get_by_role("link", name=environment).click()
        expect(self.page.get_by_role("heading", level=1, name=environment)).to_be_visible()
        expect(self.page.get_by_text("check passed").first).to_be_visible(timeout=RUN_DEADLINE_MS)

    def open_run(self, name: str) -> None:
        self.go("Runs")
        self.page.get_by_role("link", name=name).click()
        expect(self.page.get_by_role("heading", level=1, name=name)).to_be_visible()

    def await_state(self, state: str) -> None:
        badge = self.page.get_by_role("main").locator(".badge", has_text=re.compile(f"^{state}$"))
        expect(badge.first).to_be_visible(timeout=RUN_DEADLINE_MS)


def open_numbers(page: Page, chart: str) -> Locator:
    """The numbers of a chart as a table."""
    page.get_by_label(f"{chart} as a table").click()
    return page.get_by_role("region", name=f"{chart}: numbers")


def steps_in(numbers: Locator) -> list[int]:
    return [int(text) for text in numbers.get_by_role("rowheader").all_inner_texts()]

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

RUN_DEADLINE_MS = 240_000


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
        self.page.get_by_role("button", name="Top up").click()
        dialog = self.page.get_by_role("dialog")
        dialog.get_by_label("Amount").fill(str(dollars))
        dialog.get_by_role("button", name="Add to the wallet").click()
        expect(dialog).to_have_count(0)
        expect(self.figure("Balance")).to_contain_text(f"${dollars}.00")

    def figure(self, label: str) -> Locator:
        """The value that stands under this label in a strip of figures."""
        term = self.page.get_by_role("term").filter(has_text=re.compile(f"^{label}$"))
        return self.page.locator(".stat").filter(has=term)

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

    def stop_run(self) -> None:
        self.page.get_by_role("button", name="Stop", exact=True).click()
        self.page.get_by_role("dialog").get_by_role("button", name="Stop it").click()
        self.await_state("stopped")

    def read_tokens_of_the_newest_step(self) -> list[list[str]]:
        """From the curves over step, group and rollout to its tokens; the rows of their table."""
        self.tab("Curves")
        self.page.get_by_role("button", name="Open its rollouts").click()
        self.page.get_by_role("region", name="Groups").locator("tbody").get_by_role("button").first.click()
        self.page.get_by_role("region", name="Chosen group").locator("tbody").get_by_role("button").first.click()
        expect(self.page.get_by_role("heading", name="Conversation")).to_be_visible()
        tokens = self.page.locator("section.card").filter(has=self.page.get_by_role("heading", name="Tokens", exact=True))
        tokens.get_by_role("button", name="As a table").click()
        rows = tokens.get_by_role("region", name="Tokens as a table").locator("tbody tr")
        expect(rows.first).to_be_visible()
        return [row.locator("th, td").all_inner_texts() for row in rows.all()]

    def deploy_newest(self) -> tuple[str, str]:
        """Serve the newest version from the run's page; its number and digest."""
        self.tab("Versions")
        row = self.page.get_by_role("region", name="Adapter versions").locator("tbody tr").first
        version = row.locator("td").first.inner_text()
        digest = row.locator("code[title]").get_attribute("title")
        row.get_by_role("button", name=f"Deploy version {version}").click()
        expect(row.get_by_role("link", name="Talk to it")).to_be_visible(timeout=RUN_DEADLINE_MS)
        return version, str(digest)

    def ask(self, question: str) -> tuple[str, str]:
        """Send one message in the chat; what it says of who answered: the version in words, and the digest."""
        self.page.get_by_label("Message").fill(question)
        self.page.get_by_role("button", name="Send").click()
        witness = (
            self.page.get_by_role("listitem").filter(has_text=question).locator(".badge").filter(has=self.page.locator("code"))
        )
        expect(witness).to_be_visible(timeout=RUN_DEADLINE_MS)
        return witness.inner_text(), str(witness.locator("code").get_attribute("title"))

    def sees_the_last_answer(self) -> bool:
        """Whether the composer, which floats over the end of a long conversation, leaves the newest turn to be read."""
        last = self.page.locator(".turns > li").last.bounding_box()
        composer = self.page.locator("form.composer").bounding_box()
        assert last
        assert composer
        return last["y"] + last["height"] <= composer["y"]

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name, exact=True).click()
        expect(self.page.locator(".skeleton")).to_have_count(0)


def steps_in(numbers: Locator) -> list[int]:
    return [int(text) for text in numbers.get_by_role("rowheader").all_inner_texts()]

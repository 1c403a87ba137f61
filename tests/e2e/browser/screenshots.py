"""`make screenshots`: takes the pictures of the documentation from a real stack with real data, into docs/images/.

    python -m tests.e2e.browser.screenshots [--only run]

Two teams sign up, push, train and evaluate; nothing on the pictures is made up. Knows which pictures there are; refuses to know
how the data came about (`deeds`).
"""

import argparse
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, expect
from rich.console import Console

from tests.e2e.browser import deeds
from tests.e2e.browser.chromium import find_chromium, running_chromium, sign_in_by_cookie
from tests.fixtures.live_stack import LiveStack, Person
from tests.fixtures.places import REPOSITORY

IMAGES = REPOSITORY / "docs" / "images"
SIZE = {"width": 1280, "height": 832}
SIZE_BYTES_MAX = 250_000
STEPS = 36
QUESTIONS = ("3+4?", "8+9?")
console = Console(highlight=False)


@dataclass(frozen=True)
class Scene:
    """Whose data the pictures show."""

    person: Person
    environment: str
    run_id: str
    model: str


@contextmanager
def stack() -> Iterator[LiveStack]:
    """A stack of its own, which ends with the pictures."""
    with tempfile.TemporaryDirectory(prefix="rootstock-pictures-") as folder:
        root = Path(folder) / "stack"
        root.mkdir()
        running = LiveStack.start(root)
        try:
            yield running
        finally:
            running.command("down")


def sign_up(origin: str, home: Path, name: str) -> Person:
    """An account with a readable owner name; the e-mail's number keeps it apart from others of that name."""
    home.mkdir()
    account = {
        "email": f"{name}@example.com",
        "password": secrets.token_urlsafe(12),
        "name": name.title(),
        "slug": name,
        "key_name": "pictures",
    }
    answer = httpx.post(f"{origin}/api/v1/auth/sign-up", json=account, timeout=60, trust_env=False)
    answer.raise_for_status()
    made = answer.json()
    person = Person(home, origin, account["email"], account["password"], made["api_key"], name)
    deeds.told(person, "wallet", "top-up", "20")
    return person


def set_the_scene(origin: str, folder: Path) -> Scene:
    """Two teams train at the same time on opposite rewards, as in the demo; the pictures show the first one's pages."""
    ada, grace = sign_up(origin, folder / "ada", "ada"), sign_up(origin, folder / "grace", "grace")
    environments = {ada.owner: deeds.push(ada, "digit_sum"), grace.owner: deeds.push(grace, "digit_max")}
    deeds.evaluate(ada, environments["ada"], "tiny", 64)
    fields = {"max_steps": STEPS, "batch_size": 64, "rollouts_per_example": 8, "adapters__interval": 12}
    run_id = deeds.start_run(
        ada, environments["ada"], name="sum-of-two-digits", eval__interval=6, eval__num_examples=32, **fields
    )
    other = deeds.start_run(grace, environments["grace"], name="larger-of-two-digits", **fields)
    for person, run in ((ada, run_id), (grace, other)):
        assert deeds.finish_run(person, run)["status"] == "COMPLETED"
    adapter = deeds.deploy_newest(ada, run_id)
    model = f"{adapter['baseModel']}:{adapter['id']}"
    deeds.evaluate(ada, environments["ada"], model, 64)
    return Scene(ada, environments["ada"], run_id, model)


def home(page: Page, scene: Scene) -> None:
    page.goto(f"{scene.person.origin}/")


def run(page: Page, scene: Scene) -> None:
    page.goto(f"{scene.person.origin}/runs/{scene.run_id}")
    expect(page.get_by_role("img", name="Reward over steps")).to_be_visible()


def tokens(page: Page, scene: Scene) -> None:
    """The last step's first rollout, scrolled down to what the model read and wrote."""
    page.goto(f"{scene.person.origin}/runs/{scene.run_id}?tab=rollouts&step={STEPS}")
    page.get_by_role("region", name="Groups").locator("tbody").get_by_role("button").first.click()
    page.get_by_role("region", name="Chosen group").locator("tbody").get_by_role("button").first.click()
    strip = page.get_by_role("group", name="Tokens: arrow keys walk through them")
    expect(strip).to_be_visible()
    page.locator("section.card", has=strip).evaluate("(card) => card.scrollIntoView({block: 'end'})")


def environment(page: Page, scene: Scene) -> None:
    page.goto(f"{scene.person.origin}/environments/{scene.environment}")


def chat(page: Page, scene: Scene) -> None:
    """The same question to the adapter and to its base model."""
    page.goto(f"{scene.person.origin}/chat?model={scene.model}&compare=tiny")
    for number, question in enumerate(QUESTIONS, 1):
        page.get_by_label("Message").fill(question)
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".turns .badge")).to_have_count(2 * number)


def billing(page: Page, scene: Scene) -> None:
    page.goto(f"{scene.person.origin}/billing")


PICTURES: dict[str, Callable[[Page, Scene], None]] = {
    "home": home,
    "run": run,
    "tokens": tokens,
    "environment": environment,
    "chat": chat,
    "billing": billing,
}
DARK = {"run-dark": run}


def take(browser: Browser, session: Any, scene: Scene, name: str, arrange: Callable[[Page, Scene], None], scheme: str) -> Path:
    """One picture. Raises ValueError where it is larger than a page of documentation should load."""
    context = browser.new_context(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce", storage_state=session)
    page = context.new_page()
    arrange(page, scene)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".skeleton")).to_have_count(0)
    page.evaluate("() => document.fonts.ready.then(() => null)")
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path)
    context.close()
    if (size := path.stat().st_size) > SIZE_BYTES_MAX:
        raise ValueError(f"{path.name} has {size} bytes, at most {SIZE_BYTES_MAX} are wanted")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.browser.screenshots", description="Take the pictures.")
    parser.add_argument("--only", choices=sorted(PICTURES | DARK), help="this picture alone")
    options = parser.parse_args()
    path = find_chromium()
    if path is None:
        console.print("[red]no Chromium: install the system's chromium package[/red]")
        return 1
    IMAGES.mkdir(parents=True, exist_ok=True)
    with stack() as running, tempfile.TemporaryDirectory() as homes:
        console.print(f"the stack is up: {running.origin}; two teams train, a minute or two")
        scene = set_the_scene(running.origin, Path(homes))
        with running_chromium(path) as browser:
            session = sign_in_by_cookie(browser.new_context(), scene.person)
            for scheme, pictures in (("light", PICTURES), ("dark", DARK)):
                for name, arrange in pictures.items():
                    if options.only in {None, name}:
                        made = take(browser, session, scene, name, arrange, scheme)
                        console.print(f"{made.relative_to(REPOSITORY)}  {made.stat().st_size // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""From sign-up to the bill in a real browser, on the real stack, with an empty console all the way."""

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import deeds
from tests.e2e.browser.newcomer import Newcomer, open_numbers, steps_in
from tests.fixtures.live_stack import LiveStack

STEPS_TO_SEE = 3
LIVE_DEADLINE_S = 120.0
FIRST_PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"


@pytest.mark.timeout(300)
def test_a_newcomer_gets_from_sign_up_to_a_charged_run(visit, tmp_path: Path, record_property) -> None:
    window = visit()
    someone = Newcomer(window.page, window.origin, tmp_path)
    someone.sign_up()
    record_property("first_paint_ms", window.page.evaluate(FIRST_PAINT))
    print(f"first contentful paint after {window.page.evaluate(FIRST_PAINT):.0f} ms")
    person = someone.make_key()
    someone.top_up(5)
    environment = deeds.push(person, "digit_sum")
    someone.see_green(environment)
    run_id = deeds.start_run(person, environment, name="a first run", max_steps=2)
    someone.open_run("a first run")
    someone.await_state("completed")
    assert deeds.finish_run(person, run_id)["status"] == "COMPLETED"
    someone.go("Billing")
    expect(window.page.get_by_text(re.compile("training tokens", re.IGNORECASE)).first).to_be_visible()


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_a_run_is_followed_live_over_a_restart_of_the_server(visit, live_stack: LiveStack, make_person) -> None:
    person = make_person()
    environment = deeds.push(person, "digit_sum")
    run_id = deeds.start_run(person, environment, name="followed", max_steps=400)
    window = visit(person)
    page = window.open(f"/runs/{run_id}")
    expect(page.get_by_text("running", exact=True).first).to_be_visible(timeout=LIVE_DEADLINE_S * 1000)
    numbers = open_numbers(page, "Reward")
    page.evaluate("() => { window.isTheSamePage = true }")
    before = _await_step(page, numbers, STEPS_TO_SEE)
    with window.watch.outage():
        _kill_web(live_stack)
        after = _await_step(page, numbers, before + STEPS_TO_SEE)
    steps = steps_in(numbers)
    assert steps == list(range(steps[0], steps[-1] + 1)) and steps[-1] >= after
    assert page.evaluate("() => window.isTheSamePage")
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("stopped", exact=True).first).to_be_visible(timeout=LIVE_DEADLINE_S * 1000)


def _await_step(page: Page, numbers: Any, step: int) -> int:
    """The newest step in the table, once it has reached `step`. Nothing reloads the page meanwhile."""
    deadline = time.monotonic() + LIVE_DEADLINE_S
    while (shown := max(steps_in(numbers), default=0)) < step:
        assert time.monotonic() < deadline, f"the page stays at step {shown}"
        page.wait_for_timeout(200)
    return shown


def _kill_web(stack: LiveStack) -> None:
    """The web process dies without a word; the supervisor starts another. Returns when that one answers."""
    service = _web(stack)
    os.kill(service["pid"], signal.SIGKILL)
    deadline = time.monotonic() + LIVE_DEADLINE_S
    while (now := _web(stack))["restarts"] == service["restarts"] or now["state"] != "ready":
        assert time.monotonic() < deadline, now
        time.sleep(0.1)


def _web(stack: LiveStack) -> dict[str, Any]:
    service: dict[str, Any] = json.loads((stack.root / "supervisor.json").read_text())["services"]["web"]
    return service

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
from tests.e2e.browser.newcomer import Newcomer, steps_in
from tests.fixtures.live_stack import LiveStack

STEPS_TO_SEE = 3
LIVE_DEADLINE_S = 240.0
FIRST_PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"


@pytest.mark.timeout(600)
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
def test_a_run_is_followed_live_over_a_restart_and_its_adapter_answers(visit, live_stack: LiveStack, tmp_path: Path) -> None:
    window = visit()
    page = window.page
    someone = Newcomer(page, window.origin, tmp_path)
    someone.sign_up()
    person = someone.make_key()
    someone.top_up(5)
    environment = deeds.push(person, "digit_sum")
    evaluation_id = deeds.evaluate(person, environment, "tiny", 8)
    deeds.start_run(person, environment, name="followed", max_steps=400, adapters__interval=5)
    someone.open_run("followed")
    _follow_over_a_restart(window, live_stack)
    someone.stop_run()
    _check_tokens(someone.read_tokens_of_the_newest_step())
    version, digest = someone.deploy_newest()
    page.get_by_role("link", name="Talk to it").first.click()
    told, answering = someone.ask("3+4?")
    assert f"adapter version {version}" in told.splitlines()
    assert answering == digest
    for first in range(1, 7):
        someone.ask(f"{first}+2?")
    assert someone.sees_the_last_answer()
    someone.go("Evaluations")
    page.get_by_role("main").locator(f'a[href="/evaluations/{evaluation_id}"]').click()
    expect(page.get_by_text("completed", exact=True).first).to_be_visible()
    someone.go("Billing")
    for meter in ("rollout input tokens", "rollout output tokens", "training tokens", "inference output tokens"):
        expect(page.get_by_role("cell", name=meter, exact=True).first).to_be_visible()
    assert "$0.00" not in someone.figure("Spent so far").locator("dd").inner_text().split()


def _follow_over_a_restart(window: Any, stack: LiveStack) -> None:
    """The curve grows without a reload, also across a server that dies, and has every step once."""
    page = window.page
    page.evaluate("() => { window.isTheSamePage = true }")
    page.get_by_label("Reward as a table").click(timeout=LIVE_DEADLINE_S * 1000)
    numbers = page.get_by_role("region", name="Reward: numbers")
    before = _await_step(page, numbers, STEPS_TO_SEE)
    with window.watch.outage():
        _kill_web(stack)
        after = _await_step(page, numbers, before + STEPS_TO_SEE)
        expect(page.get_by_text("live", exact=True)).to_be_visible()
    steps = steps_in(numbers)
    assert steps == list(range(steps[0], steps[-1] + 1))
    assert steps[-1] >= after
    assert page.evaluate("() => window.isTheSamePage")


def _check_tokens(rows: list[list[str]]) -> None:
    """What the model wrote is sampled, trained on, and has a log-probability; what it read has none."""
    sampled = [row for row in rows if row[3] == "sampled"]
    read = [row for row in rows if row[3] == "read"]
    assert sampled and read and len(sampled) + len(read) == len(rows)
    assert all(float(row[5].replace("−", "-")) <= 0 for row in sampled)
    assert all(row[4] == "no" and row[5] == "—" for row in read)


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

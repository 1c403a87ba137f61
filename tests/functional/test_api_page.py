"""`docs/api.md`: its commands, run as they stand against a server, print what the page promises."""

import os
import subprocess

import pytest

from tests.factories.teams import make_member
from tests.fixtures.places import REPOSITORY
from tests.fixtures.recipes import broken_promise, outputs, read_steps, script

PAGE = REPOSITORY / "docs" / "api.md"


@pytest.mark.django_db(transaction=True)
def test_the_pages_commands_print_what_it_promises(live_origin: str):
    variables = {"ORIGIN": live_origin, "KEY": make_member().key, "PATH": os.environ["PATH"], "no_proxy": "127.0.0.1"}
    steps = read_steps(PAGE)
    done = subprocess.run(
        ["bash", "-c", script(steps)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    for step, printed in zip(steps, outputs(done.stdout), strict=True):
        missing = broken_promise(step, printed)
        assert missing is None, f"the page promises {missing!r}; printed was:\n{printed}"
    assert len(steps) >= 7

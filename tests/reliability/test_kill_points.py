"""A trainer that is killed before any operation on files goes on, bit for bit, and what a killed one left never looks whole."""

import json
import os
import random
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fixtures.places import REPOSITORY
from tests.numerics.recorded import run_id
from trainer.contracts.adapters import MANIFEST_NAME
from trainer.core.durable import entry_of

RUN, OTHER = run_id("killed"), run_id("beside")
SHARES = 4
"""How many tests share the points, so that several processes can."""


@contextmanager
def lives(tmp_path: Path):
    """`live(name, kill_at)`: one life of a trainer on the folder of that name."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.reliability.kill_points"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, **pipes)

    def live(name: str, kill_at: int | None = None, runs: tuple[str, ...] = (RUN,)) -> dict:
        order = {"root": str(tmp_path / name), "kill_at": kill_at, "runs": runs}
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    try:
        yield live
    finally:
        process.kill()
        process.wait()


def assert_what_is_visible_is_whole(root: Path) -> None:
    for manifest in root.rglob(MANIFEST_NAME):
        for name, entry in json.loads(manifest.read_text())["files"].items():
            assert entry_of((manifest.parent / name).read_bytes()).model_dump() == entry, manifest.parent


@pytest.mark.heavy
@pytest.mark.timeout(400)
@pytest.mark.parametrize("share", range(SHARES))
def test_wherever_a_trainer_is_killed_it_goes_on_bit_for_bit(tmp_path, share):
    """Before each operation once; the trainer that comes next is killed too, at a point drawn from a fixed seed."""
    rng, tried = random.Random(share), 0
    with lives(tmp_path) as live:
        straight = live("straight")
        losses = straight["state"][RUN]["losses"]
        for point in range(1 + share, straight["operations"] + 1, SHARES):
            assert live("root", point) == {"killed": True}, point
            assert_what_is_visible_is_whole(tmp_path / "root")
            live("root", rng.randint(1, 12))
            ended = live("root")["state"][RUN]
            assert_what_is_visible_is_whole(tmp_path / "root")
            assert {name: ended[name] for name in ("state", "version")} == {
                name: straight["state"][RUN][name] for name in ("state", "version")
            }, point
            assert ended["losses"].items() <= losses.items(), point
            left = [path for path in (tmp_path / "root").rglob(".*") if path.is_file()]
            assert not left, "what a killed trainer left half-written is gone"
            shutil.rmtree(tmp_path / "root")
            tried += 1
    assert tried >= 60 // SHARES


def test_a_trainer_killed_between_the_files_of_a_checkpoint_shows_none(tmp_path):
    """A sample of the above for every day: two runs share the trainer that is killed, and both go on."""
    with lives(tmp_path) as live:
        straight = live("straight", runs=(RUN, OTHER))
        for point in random.Random(1).sample(range(1, straight["operations"] + 1), 6):
            assert live("root", point, runs=(RUN, OTHER)) == {"killed": True}
            assert_what_is_visible_is_whole(tmp_path / "root")
            ended = live("root", runs=(RUN, OTHER))["state"]
            for run in (RUN, OTHER):
                assert (ended[run]["state"], ended[run]["version"]) == (
                    straight["state"][run]["state"],
                    straight["state"][run]["version"],
                )
            shutil.rmtree(tmp_path / "root")

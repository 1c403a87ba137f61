"""What the base runner environments hold is written down to the byte."""

import re

import pytest

from trainer.contracts.interfaces import RUNNER_REQUIREMENTS, Interface
from trainer.sandboxing.base_venv import pins_of


def pinned(interface: Interface) -> dict[str, str]:
    """`name==version` to the block of its line and hashes."""
    blocks = re.split(r"\n(?=\S)", pins_of(interface).read_text().strip())
    return {block.split()[0]: block for block in blocks}


@pytest.mark.parametrize("interface", RUNNER_REQUIREMENTS)
def test_the_pins_are_those_of_the_requirements(interface: Interface):
    assert set(RUNNER_REQUIREMENTS[interface]) <= pinned(interface).keys(), "write them anew: make pins"


@pytest.mark.parametrize("interface", RUNNER_REQUIREMENTS)
def test_every_pinned_package_has_a_version_and_a_hash(interface: Interface):
    for package, block in pinned(interface).items():
        assert re.fullmatch(r"[a-z0-9.-]+==\S+", package)
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", block), package

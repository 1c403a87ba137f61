"""A program's peak is its own, however large the one is that started it."""

import subprocess
import sys

from tests.bench.resident import own_peak_bytes
from tests.fixtures.places import REPOSITORY

SCRIPT = """
from tests.bench.resident import own_peak_bytes
before, held = own_peak_bytes(), b"1" * 80_000_000
print(before, own_peak_bytes())
"""


def test_a_small_program_of_a_large_one_is_small():
    held = b"1" * 200_000_000
    assert own_peak_bytes() > len(held)
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before < 100_000_000 and 79_000_000 < after - before < 100_000_000

"""What a visitor downloads."""

import gzip

from tests.fixtures.places import REPOSITORY

DIST = REPOSITORY / "frontend" / "dist"
LIMIT_BYTES = 150_000


def test_the_whole_dashboard_is_at_most_150_kb_compressed() -> None:
    sizes = {
        path.name: len(gzip.compress(path.read_bytes()))
        for path in DIST.rglob("*")
        if path.suffix in {".js", ".css", ".html", ".svg"}
    }
    assert sizes, "the dashboard is not built: run `make frontend`"
    assert sum(sizes.values()) <= LIMIT_BYTES, sizes

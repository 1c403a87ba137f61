"""What a visitor downloads before a page is there."""

import gzip
import re

from tests.fixtures.places import REPOSITORY

DIST = REPOSITORY / "frontend" / "dist"
LIMIT_BYTES = 150_000
STATIC_IMPORT = re.compile(r"""(?:from|import)\s*["']\./([\w-]+\.js)["']""")


def needed(script: str, found: set[str]) -> set[str]:
    """The script and everything that it cannot begin without."""
    if script not in found:
        found.add(script)
        for other in STATIC_IMPORT.findall((DIST / "assets" / script).read_text()):
            needed(other, found)
    return found


def test_no_page_needs_more_than_150_kb_compressed() -> None:
    index = DIST / "index.html"
    assert index.exists(), "the dashboard is not built: run `make frontend`"
    scripts = [path.name for path in (DIST / "assets").glob("*.js")]
    entries = [name for name in scripts if name in index.read_text()]
    size = {path.name: len(gzip.compress(path.read_bytes())) for path in (DIST / "assets").iterdir()}
    # Every page is counted with the styles of all: they are small, and which of them it needs stands in no file.
    shell = sum(count for name, count in size.items() if name.endswith(".css")) + len(gzip.compress(index.read_bytes()))
    first = set().union(*(needed(entry, set()) for entry in entries))
    pages = {name: shell + sum(size[one] for one in needed(name, set()) | first) for name in scripts}
    assert entries and len(pages) > len(first)
    assert max(pages.values()) <= LIMIT_BYTES, dict(sorted(pages.items(), key=lambda page: page[1])[-3:])

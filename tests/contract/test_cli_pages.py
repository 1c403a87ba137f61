"""The links that the `prime` command prints lead to pages that the dashboard has."""

import re

from tests.fixtures.places import REPOSITORY

PRINTED = re.compile(r'show_page\(f?"([^"?]*)')
ROUTE = re.compile(r'<Route path="([^"]+)"')
PLACE = re.compile(r"\{[^}]*\}")


def first_words(path: str) -> str:
    """`/runs/:id/*` and `/runs/{run['id']}` are both `/runs`; the start page is itself."""
    return "/" + PLACE.sub("", path).strip("/").partition("/")[0].partition(":")[0]


def test_every_printed_page_is_a_route_of_the_dashboard():
    routes = {first_words(path) for path in ROUTE.findall((REPOSITORY / "frontend" / "src" / "app.tsx").read_text())}
    commands = sorted((REPOSITORY / "platform" / "primecli" / "commands").glob("*.py"))
    printed = {(file.name, first_words(path)) for file in commands for path in PRINTED.findall(file.read_text())}
    assert len(printed) > 5
    assert {(name, page) for name, page in printed if page not in routes} == set()

"""Cursor pages: every row once, in a stable order, and a cursor that is nobody's to write."""

import pytest

from tests.contract.test_openapi import operations
from tests.factories.teams import client_for, make_member

pytestmark = pytest.mark.django_db


STAND_INS = {"ids": ",".join("c" + digit * 24 for digit in "01")}
"""For what a list cannot be asked for without."""


def required_of(operation: dict) -> dict[str, str]:
    return {one["name"]: one["in"] for one in operation.get("parameters", []) if one.get("required")}


def is_list(path: str, method: str, operation: dict) -> bool:
    """A page of something at an address without an object in it."""
    pages = {"cursor", "limit"} <= {one.get("name") for one in operation.get("parameters", [])}
    return method == "get" and pages and "path" not in required_of(operation).values()


PAGED = {path: required_of(operation) for path, method, operation in operations() if is_list(path, method, operation)}
LISTS = sorted(path for path, required in PAGED.items() if not required)


def test_every_row_is_met_once_while_rows_are_added():
    client = client_for(make_member())
    made = [client.post("/api/v1/keys", {"name": f"key-{number}"}).json()["id"] for number in range(5)]
    page = client.get("/api/v1/keys", {"limit": 2}).json()
    seen = [key["id"] for key in page["items"]]
    late = client.post("/api/v1/keys", {"name": "late"}).json()["id"]
    while page["next_cursor"]:
        page = client.get("/api/v1/keys", {"limit": 2, "cursor": page["next_cursor"]}).json()
        seen += [key["id"] for key in page["items"]]
    assert len(seen) == len(set(seen)) == 6 and set(made) < set(seen) and late not in seen
    assert seen[:5] == made[::-1]


@pytest.mark.parametrize("path", LISTS)
def test_a_cursor_that_no_page_of_the_list_gave_out_is_refused_by_name(path: str):
    client = client_for(make_member())
    client.post("/api/v1/keys", {"name": "second"})
    real = client.get("/api/v1/keys", {"limit": 1}).json()["next_cursor"]
    foreign = [real] if path != "/api/v1/keys" else []
    for cursor in ["nonsense", real[:-2], real.replace(":", "x", 1), *foreign]:
        refused = client.get(path, {"cursor": cursor})
        assert refused.status_code == 422 and refused.json()["detail"][0]["loc"] == ["query", "cursor"], refused.content


@pytest.mark.parametrize("path", sorted(PAGED))
@pytest.mark.parametrize("limit", ["0", "-1", "1001", "many"])
def test_a_limit_out_of_bounds_is_refused_by_name(path: str, limit: str):
    asked = {name: STAND_INS[name] for name in PAGED[path]}
    refused = client_for(make_member()).get(path, asked | {"limit": limit})
    assert refused.status_code == 422 and refused.json()["detail"][0]["loc"] == ["query", "limit"]

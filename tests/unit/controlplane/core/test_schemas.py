"""Bodies and query strings become models, and a refusal names the field."""

from typing import Any

import pytest
from django.test import RequestFactory
from rest_framework.parsers import JSONParser
from rest_framework.request import Request

from controlplane.core.errors import Invalid
from controlplane.core.schemas import Body, CamelAnswer, Query, query_parameters, read_body, read_query


class Sample(Body):
    name: str
    size: int = 1


class Filter(Query):
    tags: list[str] = []
    limit: int = 10


class Row(CamelAnswer):
    team_id: str


def request(body: Any) -> Request:
    return Request(RequestFactory().post("/x", body, content_type="application/json"), parsers=[JSONParser()])


def refused(body: Any) -> list[tuple[Any, ...]]:
    with pytest.raises(Invalid) as raised:
        read_body(request(body), Sample)
    return [one.loc for one in raised.value.problems]


def test_the_team_may_ride_in_any_body():
    assert read_body(request({"name": "a", "team_id": "c1", "teamId": None}), Sample) == Sample(name="a")


@pytest.mark.parametrize(
    ("body", "locs"),
    [
        ({}, [("body", "name")]),
        ({"name": "a", "sise": 2}, [("body", "sise")]),
        ({"name": 1, "size": "x"}, [("body", "name"), ("body", "size")]),
        ([1], [("body",)]),
    ],
)
def test_every_refused_field_is_named(body: Any, locs: list[tuple[Any, ...]]):
    assert refused(body) == locs


def test_a_query_ignores_what_it_does_not_know_and_collects_lists():
    plain = RequestFactory().get("/x?tags=a&tags=b&teamId=c1&limit=3")
    assert read_query(plain, Filter) == Filter(tags=["a", "b"], limit=3)


def test_a_refused_parameter_is_named():
    with pytest.raises(Invalid) as raised:
        read_query(RequestFactory().get("/x?limit=many"), Filter)
    assert raised.value.problems[0].loc == ("query", "limit")


def test_camel_case_where_the_client_reads_it():
    assert Row(team_id="c1").model_dump(mode="json") == {"teamId": "c1"}


def test_query_models_document_themselves():
    assert [(one.name, one.required) for one in query_parameters(Filter)] == [("tags", False), ("limit", False)]

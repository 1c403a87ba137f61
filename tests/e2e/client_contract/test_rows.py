"""The table of rows itself: what counts as shown, and what would not."""

import pytest

from tests.e2e.client_contract.clients import CLIENTS
from tests.e2e.client_contract.plan import ABSENT, ACCOUNT, LANES, LOGIN, OURS
from tests.e2e.client_contract.rows import PENDING, rows

ROWS = {str(row): row for row in rows()}


def test_the_wire_has_96_essential_rows_of_which_14_come_later():
    assert len(ROWS) == len(rows()) == 96 and sum(row.is_deferred for row in rows()) == 14
    assert set(ROWS) >= PENDING


@pytest.mark.parametrize(
    ("row", "method", "address", "status", "is_shown"),
    [
        ("GET /api/v1/rft/runs/{run}", "GET", "/api/v1/rft/runs/c1", 200, True),
        ("GET /api/v1/rft/runs/{run}", "GET", "/api/v1/rft/runs/c1?team_id=x", 200, True),
        ("GET /api/v1/rft/runs/{run}", "GET", "/api/v1/rft/runs/c1/logs", 200, False),
        ("GET /api/v1/rft/runs/{run}", "GET", "/api/v1/rft/runs/c1", 404, False),
        ("GET /api/v1/rft/runs/{run}", "PUT", "/api/v1/rft/runs/c1", 200, False),
        ("GET /api/v1/environmentshub/", "GET", "/api/v1/environmentshub/?limit=1", 200, True),
        ("DELETE /api/v1/environmentshub/{env}", "DELETE", "/api/v1/environmentshub/o/n", 200, False),
        ("PUT /objects/hub/{key*}", "PUT", "/objects/hub/uploads/c1?signature=s", 200, True),
        ("PUT /objects/hub/{key*}", "PUT", "/objects/ingest/t/r/x.parquet?signature=s", 200, False),
        ("POST /api/v1/training/runs/prepare", "POST", "/api/v1/training/runs/prepare", 405, True),
        ("POST /api/v1/training/runs/prepare", "POST", "/api/v1/training/runs/prepare", 200, False),
    ],
)
def test_a_row_is_shown_by_its_own_question_and_a_right_answer_alone(row, method, address, status, is_shown):
    assert ROWS[row].is_shown_by(method, address, status) is is_shown


def test_every_client_of_the_matrix_is_used():
    steps = [LOGIN, *ACCOUNT, *ABSENT, *(step for lane in LANES.values() for step in lane)]
    assert {step.client for step in steps} == {*CLIENTS, OURS}

"""Files of a stranger: what is read, and what each broken or hostile one is refused for."""

import io

import pyarrow
import pytest

from controlplane.ingest import parquet
from controlplane.ingest.errors import SamplesRefused
from controlplane.ingest.parquet import read_rows
from tests.factories.parquet import SCHEMA, parquet_file, sample

STRUCTURED = pyarrow.schema([("completion", pyarrow.list_(pyarrow.string())), ("reward", pyarrow.float64())])
WITHOUT_REWARD = pyarrow.schema([("completion", pyarrow.string())])


def rows_of(content: bytes):
    return read_rows(io.BytesIO(content))


def test_rows_come_by_the_columns_that_are_known():
    rows = rows_of(parquet_file(sample(1, 0.5), sample(2, None)))
    assert [(row["problem_id"], row["reward"], row["env_name"]) for row in rows] == [(1, 0.5, "ada/sums"), (2, None, "ada/sums")]
    assert "created_at" not in rows[0] and "run_id" not in rows[0]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"not parquet", "not a Parquet file"),
        (parquet_file(sample(1, 1.0))[:-40], "not a Parquet file"),
        (parquet_file(), "no rows"),
        (parquet_file({"completion": "x"}, schema=WITHOUT_REWARD), "no column reward"),
        (parquet_file({"completion": ["x"], "reward": 1.0}, schema=STRUCTURED), "column completion holds neither"),
    ],
    ids=["text", "cut off", "empty", "a column less", "structures"],
)
def test_a_file_that_is_no_table_of_samples_is_refused_by_name(content: bytes, reason: str):
    with pytest.raises(SamplesRefused, match=reason):
        rows_of(content)


def test_a_small_file_that_inflates_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parquet, "INFLATED_BYTES_MAX", 2**20)
    content = parquet_file(*(sample(number, 1.0, answer="a" * 2**16) for number in range(64)))
    assert len(content) < 2**16
    with pytest.raises(SamplesRefused, match="bytes; at most"):
        rows_of(content)


def test_more_rows_than_a_step_may_have_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parquet, "ROWS_MAX", 3)
    with pytest.raises(SamplesRefused, match="4 rows; at most 3"):
        rows_of(parquet_file(*(sample(number, 1.0) for number in range(4))))


def test_the_factory_writes_the_wire_s_columns():
    assert set(SCHEMA.names) > parquet.COLUMNS

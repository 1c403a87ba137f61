"""Reads a Parquet file of rollouts that a stranger uploaded: its rows as plain values, within limits, or the reason why not.

Knows columns and sizes. Refuses to know what a column means (`records`). The footer of a file may lie, so that rows and bytes are
counted again while they are read, a few rows at a time.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from controlplane.ingest.errors import SamplesRefused

FILE_BYTES_MAX = 64 * 2**20
INFLATED_BYTES_MAX = 256 * 2**20
ROWS_MAX = 8192
BATCH_ROWS = 64
COLUMNS = frozenset(
    {
        "tag", "problem_id", "sample_id", "prompt", "completion", "trajectory", "answer", "env_name", "task", "info", "reward",
        "advantage", "metrics", "timing", "num_input_tokens", "num_output_tokens",
    }
)  # fmt: skip
NEEDED = frozenset({"completion", "reward"})
PLAIN = (str, int, float, bool, type(None))
Row = dict[str, Any]


def read_rows(file: BinaryIO) -> list[Row]:
    """Every row, by the columns that we know. Raises SamplesRefused."""
    # Heavy, and needed where somebody trains elsewhere alone.
    import pyarrow
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(file, memory_map=False)
        names = _columns(opened.metadata, opened.schema_arrow.names)
        rows = list(_rows(opened, names))
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SamplesRefused(f"not a Parquet file that can be read: {str(error)[:200]}") from None
    if not rows:
        raise SamplesRefused("the file has no rows")
    return rows


def _columns(footer: Any, names: list[str]) -> list[str]:
    if missing := sorted(NEEDED - set(names)):
        raise SamplesRefused(f"the file has no column {', '.join(missing)}")
    _limit("rows", footer.num_rows, ROWS_MAX)
    _limit("bytes", sum(footer.row_group(one).total_byte_size for one in range(footer.num_row_groups)), INFLATED_BYTES_MAX)
    return [name for name in names if name in COLUMNS]


def _rows(opened: Any, names: list[str]) -> Iterator[Row]:
    rows_count = size_bytes = 0
    for batch in opened.iter_batches(batch_size=BATCH_ROWS, columns=names):
        rows_count, size_bytes = rows_count + batch.num_rows, size_bytes + batch.nbytes
        _limit("rows", rows_count, ROWS_MAX)
        _limit("bytes", size_bytes, INFLATED_BYTES_MAX)
        for row in batch.to_pylist():
            if odd := sorted(name for name, value in row.items() if not isinstance(value, PLAIN)):
                raise SamplesRefused(f"column {odd[0]} holds neither text nor numbers; structures are sent as JSON text")
            yield row


def _limit(what: str, found: int, most: int) -> None:
    if found > most:
        raise SamplesRefused(f"the file holds {found} {what}; at most {most} are taken")

"""Parquet files of rollouts as a public trainer writes them: the columns of its samples, JSON text where it has structures."""

import io
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow
from pyarrow import parquet

WHOLE = ("step", "problem_id", "sample_id", "num_input_tokens", "num_output_tokens")
NUMBERS = ("reward", "advantage")
TEXTS = ("run_id", "tag", "prompt", "completion", "trajectory", "answer", "env_name", "task", "info", "metrics", "timing")
SCHEMA = pyarrow.schema(
    [
        *((name, pyarrow.string()) for name in TEXTS),
        *((name, pyarrow.int64()) for name in WHOLE),
        *((name, pyarrow.float64()) for name in NUMBERS),
        ("created_at", pyarrow.timestamp("us", tz="UTC")),
    ]
)


def sample(problem: int, reward: float | None, said: str = "7", **columns: Any) -> dict[str, Any]:
    """One row: a question, its answer and what it earned."""
    conversation = [{"role": "user", "content": f"question {problem}"}, {"role": "assistant", "content": said}]
    return {
        "tag": "",
        "problem_id": problem,
        "sample_id": problem,
        "prompt": "",
        "completion": json.dumps(conversation),
        "trajectory": json.dumps([{"messages": conversation, "reward": reward}]),
        "answer": "7",
        "env_name": "ada/sums",
        "task": json.dumps({"idx": problem}),
        "info": json.dumps({"level": 1}),
        "reward": reward,
        "advantage": 0.5,
        "metrics": json.dumps({"exact": 1.0}),
        "timing": json.dumps({"total_ms": 1500}),
        "num_input_tokens": 11,
        "num_output_tokens": 3,
        "created_at": datetime.now(UTC),
    } | columns


def parquet_file(*rows: dict[str, Any], schema: pyarrow.Schema = SCHEMA) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema=schema), sink, compression="snappy", use_dictionary=True)
    return sink.getvalue()

"""Rollout bodies in the object store: zstd JSON lines, one full record per rollout, under a key made of their own digest.

Knows encoding and limits. Refuses to know what a record means.
"""

import base64
import binascii
import hashlib
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import zstandard

from controlplane.core.errors import Invalid
from controlplane.core.objects import store
from controlplane.pools.models import Lease
from trainer.contracts.internal import RolloutBatch

COMPRESSED_BYTES_MAX = 32 * 2**20
INFLATED_BYTES_MAX = 256 * 2**20


@dataclass(frozen=True)
class StoredBody:
    key: str
    sha256: str
    size_bytes: int


def store_body(lease: Lease, batch: RolloutBatch) -> StoredBody:
    """Check the body's digest and put it away. Raises `Invalid` naming the field that is wrong."""
    try:
        data = base64.b64decode(batch.body_zstd_b64, validate=True)
    except binascii.Error as error:
        raise Invalid(("body", "body_zstd_b64"), "not base64") from error
    if len(data) > COMPRESSED_BYTES_MAX:
        raise Invalid(("body", "body_zstd_b64"), f"{len(data)} bytes; at most {COMPRESSED_BYTES_MAX} are taken")
    if hashlib.sha256(data).hexdigest() != batch.body_sha256:
        raise Invalid(("body", "body_sha256"), "does not match body_zstd_b64")
    key = f"rollouts/{lease.team_id}/{lease.subject_id}/{batch.body_sha256}.jsonl.zst"
    stored = store().put(key, data)
    return StoredBody(key, batch.body_sha256, stored.size_bytes)


def store_records(folder: str, records: Iterable[dict[str, Any]]) -> StoredBody:
    """Records that no leased process sent, encoded as one would have. `folder` ends with a slash."""
    lines = (json.dumps(record, ensure_ascii=False) for record in records)
    data = zstandard.ZstdCompressor().compress("\n".join(lines).encode(errors="replace"))
    sha256 = hashlib.sha256(data).hexdigest()
    key = f"{folder}{sha256}.jsonl.zst"
    return StoredBody(key, sha256, store().put(key, data).size_bytes)


def read_body(key: str) -> list[dict[str, Any]]:
    """Every record of a stored body, in the order of the summaries. Inflates no more than the limit."""
    reader = zstandard.ZstdDecompressor().stream_reader(store().read(key), read_across_frames=True)
    text = reader.read(INFLATED_BYTES_MAX)
    return [json.loads(line) for line in text.splitlines() if line]


def read_record(key: str, position: int) -> dict[str, Any]:
    """The record that belongs to the summary at `position`; an empty one where the body ends before. Keeps one line in memory."""
    with store().open(key) as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        lines = io.TextIOWrapper(reader, encoding="utf-8", newline="\n")
        line = next(islice(lines, position, None), "")
    return json.loads(line) if line.strip() else {}


def with_messages(record: dict[str, Any]) -> dict[str, Any]:
    """A record with the conversation to show: that of the seat that is trained, else of the first."""
    traces = record.get("traces") or []
    chosen = next((trace for trace in traces if trace.get("trainable")), traces[0] if traces else {})
    return record | {"messages": chosen.get("messages") or []}

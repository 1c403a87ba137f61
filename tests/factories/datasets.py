"""Makes datasets the way an upload does."""

import hashlib
import json
from typing import Any

from controlplane.core.objects import store
from controlplane.core.tenancy import acting_for
from controlplane.datasets import services
from controlplane.datasets.models import Dataset
from controlplane.datasets.schemas import DeclareDataset
from tests.factories.teams import Member

EXCHANGE = {"messages": [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}]}


def lines(*rows: Any) -> bytes:
    """JSON lines; bytes stand for themselves."""
    return b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows)


def declaration(content: bytes, name: str = "sums", **more: Any) -> dict[str, Any]:
    return {"name": name, "sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content), **more}


def make_dataset(member: Member, content: bytes = lines(EXCHANGE), name: str = "sums") -> Dataset:
    with acting_for(member.team_id):
        dataset, _ = services.declare_dataset(member.actor, DeclareDataset.model_validate(declaration(content, name)))
        store().put(dataset.object_key, content)
        return services.finalize_dataset(member.actor, dataset)

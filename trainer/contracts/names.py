"""How a version of an adapter and a served model are spelled (DESIGN: adapter identity). Pure text, no lookup."""

from typing import NamedTuple

from trainer.contracts.base import is_id


class AdapterVersionName(NamedTuple):
    """`<run_id>.v<N>`: the immutable engine name of version N, which is the adapter after N optimizer steps."""

    run_id: str
    version: int

    def __str__(self) -> str:
        return f"{self.run_id}.v{self.version}"


def parse_engine_name(name: str) -> AdapterVersionName | None:
    """The version that an engine name spells, or None when the name is a base model's."""
    run_id, dot, version = name.rpartition(".v")
    if not dot or not is_id(run_id) or not version.isdigit():
        return None
    return AdapterVersionName(run_id, int(version))


def split_served_name(name: str) -> tuple[str, str | None]:
    """`base:adapter_id` → (base, adapter_id); a bare base model → (base, None). Base ids hold neither ':' nor '@'."""
    base, colon, adapter = name.partition(":")
    return base, adapter if colon else None

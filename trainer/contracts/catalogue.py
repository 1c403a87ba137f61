"""One base model, as `trainer/models/<id>.toml` describes it. `/models`, runner, engine and preflight read only this."""

import hashlib
import tomllib
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from trainer.contracts.base import Wire


class ModelPrices(Wire):
    """US dollars per million tokens."""

    input: Decimal
    output: Decimal
    training: Decimal


class BaseModelSpec(Wire):
    """`id` holds neither ':' nor '@'. `weights` and `tokenizer` are folders relative to the catalogue's folder, or absolute."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,126}$")]
    display_name: str
    description: str
    license: str
    weights: str
    tokenizer: str
    renderer: dict[str, Any]
    tool_parser: str | None = None
    context_tokens: Annotated[int, Field(ge=16)]
    target_modules: tuple[str, ...]
    rank_max: Annotated[int, Field(ge=1)]
    prices_usd_per_mtok: ModelPrices


def catalogue_folder() -> Path:
    return Path(str(files("trainer"))) / "models"


@cache
def load_catalogue() -> dict[str, BaseModelSpec]:
    """Every base model by id. An invalid file is an error at first use: a catalogue is ours and never half-read."""
    specs = (BaseModelSpec.model_validate(tomllib.loads(path.read_text())) for path in sorted(catalogue_folder().glob("*.toml")))
    return {spec.id: spec for spec in specs}


def model_folder(spec_path: str) -> Path:
    """Where a catalogue entry's `weights` or `tokenizer` lies on this host."""
    path = Path(spec_path)
    return path if path.is_absolute() else catalogue_folder() / path


def weights_digest(folder: Path) -> str:
    """The identity of a base model's weights: the sha256 of its safetensors file. Of several shards, the sha256 of their
    digests in hex, joined in the order of the file names."""
    digests = []
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    if not digests:
        raise FileNotFoundError(f"no safetensors file in {folder}")
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

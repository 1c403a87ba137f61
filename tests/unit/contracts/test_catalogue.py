"""The catalogue of base models: every entry is complete, and its files are found where they ship or were fetched to."""

from pathlib import Path

import pytest

from trainer.contracts.catalogue import MODELS_DIR_VARIABLE, load_catalogue, model_folder

CATALOGUE = load_catalogue()


@pytest.mark.parametrize("model", sorted(CATALOGUE))
def test_an_entry_names_licence_prices_renderer_and_targets(model):
    spec = CATALOGUE[model]
    assert spec.id == model
    assert spec.license and spec.description and spec.renderer["name"] and spec.target_modules
    prices = spec.prices_usd_per_mtok
    assert min(prices.input, prices.output, prices.training) > 0


@pytest.mark.parametrize("model", sorted(CATALOGUE))
def test_a_model_ships_or_says_where_it_comes_from(model, tmp_path, monkeypatch):
    spec = CATALOGUE[model]
    monkeypatch.setenv(MODELS_DIR_VARIABLE, str(tmp_path))
    fetched = model_folder(spec.weights).is_relative_to(tmp_path)
    assert fetched == (spec.source is not None)
    if fetched:
        assert model_folder(spec.tokenizer) == tmp_path / spec.tokenizer
        assert spec.weights == f"{model}/weights" and spec.tokenizer == f"{model}/tokenizer", "where `fetch` puts them"
    else:
        assert list(model_folder(spec.weights).glob("*.safetensors"))


def test_an_absolute_folder_is_taken_as_it_is(tmp_path):
    assert model_folder(str(tmp_path)) == tmp_path
    assert model_folder(str(tmp_path / "absent")) == tmp_path / "absent"


def test_without_the_variable_fetched_models_lie_in_the_users_cache(monkeypatch):
    monkeypatch.delenv(MODELS_DIR_VARIABLE, raising=False)
    assert model_folder("absent/weights") == Path.home() / ".cache" / "rootstock" / "models" / "absent" / "weights"

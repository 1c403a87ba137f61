"""What an adapter's folder must be before a number of it is used; each refusal names what is wrong."""

import json

import pytest
import torch

from tests.factories.engines import reader_of
from tests.factories.tiny_llama import adapter_tensors, write_adapter
from trainer.contracts.adapters import CONFIG_NAME, MANIFEST_NAME, WEIGHTS_NAME
from trainer.inference.errors import AdapterFilesMissing, InvalidAdapter

Q0 = "base_model.model.model.layers.0.self_attn.q_proj"


@pytest.fixture(scope="module")
def reader(tmp_path_factory, model):
    return reader_of(tmp_path_factory.getbasetemp(), model, rank_max=16)


def edited(model, change):
    tensors = adapter_tensors(model, seed=1)
    change(tensors)
    return tensors


def test_a_good_adapter_is_read_with_its_digest(tmp_path, reader, model):
    digest = write_adapter(tmp_path, model, rank=4)
    weights = reader.read(tmp_path, digest=digest)
    assert (weights.digest, weights.rank, weights.rank_class) == (digest, 4, 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.update({Q0 + ".lora_A.weight": torch.zeros(8, 31)}), "q_proj.lora_A.weight has shape .8, 31."),
        (lambda t: t.update({Q0 + ".lora_B.weight": torch.zeros(32, 4)}), "q_proj.lora_B.weight has shape .32, 4."),
        (lambda t: t.pop(Q0 + ".lora_B.weight"), "layer 0 self_attn.q_proj has lora_A alone"),
        (lambda t: t.update({Q0.replace("layers.0", "layers.7") + ".lora_A.weight": torch.zeros(8, 32)}), "layers.7"),
        (lambda t: t.update({"base_model.model.lm_head.lora_A.weight": torch.zeros(8, 32)}), "lm_head"),
        (lambda t: t.update({Q0.replace("q_proj", "qkv_proj") + ".lora_A.weight": torch.zeros(8, 32)}), "qkv_proj"),
        (lambda t: t[Q0 + ".lora_A.weight"].fill_(float("nan")), "no finite numbers"),
        (lambda t: t.update({Q0 + ".lora_A.weight": torch.zeros(8, 32, dtype=torch.int64)}), "no finite numbers"),
    ],
)
def test_tensors_that_do_not_fit_are_refused_by_name(tmp_path, reader, model, change, message):
    write_adapter(tmp_path, model, tensors=edited(model, change))
    with pytest.raises(InvalidAdapter, match=message):
        reader.read(tmp_path, digest=None)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"use_dora": True}, "use_dora"),
        ({"use_rslora": True}, "use_rslora"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"rank_pattern": {"q_proj": 2}}, "rank_pattern"),
        ({"bias": "all"}, "bias"),
        ({"r": 4}, "says rank 4"),
        ({"lora_alpha": 1}, "alpha 1"),
    ],
)
def test_features_that_would_be_computed_wrongly_are_refused(tmp_path, reader, model, config, message):
    write_adapter(tmp_path, model, config=config)
    with pytest.raises(InvalidAdapter, match=message):
        reader.read(tmp_path, digest=None)


def test_a_rank_above_the_limit_is_refused_with_the_limit(tmp_path, reader, model):
    write_adapter(tmp_path, model, rank=32)
    with pytest.raises(InvalidAdapter, match="rank 32 is above this engine's limit of 16") as refusal:
        reader.read(tmp_path, digest=None)
    assert refusal.value.code == "rank_too_large"


def test_bytes_must_hash_to_the_manifest_and_to_the_request(tmp_path, reader, model):
    write_adapter(tmp_path, model)
    with pytest.raises(InvalidAdapter, match="the request says"):
        reader.read(tmp_path, digest="0" * 64)
    path = tmp_path / WEIGHTS_NAME
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(InvalidAdapter, match=r"manifest\.json says") as refusal:
        reader.read(tmp_path, digest=None)
    assert refusal.value.code == "digest_mismatch"


@pytest.mark.parametrize("name", [MANIFEST_NAME, WEIGHTS_NAME, CONFIG_NAME])
def test_a_missing_file_is_named(tmp_path, reader, model, name):
    write_adapter(tmp_path, model)
    (tmp_path / name).unlink()
    with pytest.raises(AdapterFilesMissing, match=name):
        reader.read(tmp_path, digest=None)


@pytest.mark.parametrize("name", [MANIFEST_NAME, CONFIG_NAME])
@pytest.mark.parametrize("content", ["{", "[]"])
def test_files_that_are_no_documents_are_refused(tmp_path, reader, model, name, content):
    write_adapter(tmp_path, model)
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidAdapter, match=name):
        reader.read(tmp_path, digest=None)


def test_another_base_model_is_refused(tmp_path, reader, model):
    write_adapter(tmp_path, model)
    manifest = json.loads((tmp_path / MANIFEST_NAME).read_text()) | {"base_digest": "1" * 64}
    (tmp_path / MANIFEST_NAME).write_text(json.dumps(manifest))
    with pytest.raises(InvalidAdapter) as refusal:
        reader.read(tmp_path, digest=None)
    assert refusal.value.code == "wrong_base_model"


def test_paths_outside_the_root_are_refused_also_through_links(tmp_path, model):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    write_adapter(outside, model)
    (root / "link").symlink_to(outside)
    reader = reader_of(root, model)
    for path in (outside, root / "link", root / ".." / "outside"):
        with pytest.raises(InvalidAdapter, match="outside the artifact root"):
            reader.folder(str(path))
    assert reader.folder(str(root / "runs")) == (root / "runs").resolve()

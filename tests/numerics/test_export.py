"""What is exported gives, in plain `transformers` and `peft`, the log-probabilities that the engine served (fp32)."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.factories.engines import reader_of
from tests.factories.tiny_llama import make_model, write_adapter
from tests.numerics.recorded import WEIGHTS, new_pool, recorded, run_id, spec, step_together
from tests.numerics.test_engine_agreement import differences, sampled
from trainer.contracts.adapters import LoraSpec
from trainer.contracts.catalogue import weights_digest
from trainer.contracts.training import OptimizerSpec
from trainer.core.export import ExportError, export_adapter, export_merged

BOUND = 1e-4


def plain(folder: Path) -> AutoModelForCausalLM:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def worst_gap(model, sequences) -> float:
    return differences(lambda ids: model(ids[None]).logits[0], sequences).max().item()


def trained_version(root: Path, lora: LoraSpec) -> Path:
    run = run_id("export")
    pool = new_pool(root)
    pool.open(run, spec(lora=lora, optimizer=OptimizerSpec(learning_rate=1e-2, warmup_steps=0)))
    for batch in recorded(run, 3, seed=5):
        (result,) = step_together(pool, [batch])
    return root / result.adapter_path


def export_command(*words: object) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "trainer.core.export", *map(str, words)], capture_output=True, text=True)


@pytest.mark.parametrize("lora", [LoraSpec(rank=8, alpha=16), LoraSpec(rank=3, alpha=5, target_modules=("v_proj", "down_proj"))])
def test_a_trained_version_gives_the_served_logprobs_in_transformers_and_peft(tmp_path, lora):
    version = trained_version(tmp_path, lora)
    on_base, on_version = sampled(WEIGHTS, [reader_of(tmp_path, WEIGHTS).read(version, digest=None)])
    for flags in ((), ("--merged", "--dtype", "float32")):
        done = export_command(version, "--to", tmp_path / f"out{len(flags)}", *flags)
        assert done.returncode == 0, done.stderr
    merged = plain(tmp_path / "out3")
    assert worst_gap(merged, on_version) <= BOUND
    assert worst_gap(PeftModel.from_pretrained(plain(WEIGHTS), tmp_path / "out0"), on_version) <= BOUND
    assert worst_gap(plain(WEIGHTS), on_version) > 100 * BOUND, "the adapter must matter"
    assert worst_gap(merged, on_base) > 100 * BOUND
    assert AutoTokenizer.from_pretrained(tmp_path / "out3").chat_template


def test_an_untied_model_in_shards_keeps_its_shards_and_its_type(tmp_path):
    base = make_model(tmp_path / "base", seed=2, tie_word_embeddings=False)
    version = tmp_path / "v1"
    write_adapter(version, base, seed=4, rank=5, alpha=9.0)
    one = base / "model.safetensors"
    weights, names = load_file(one), {}
    for number, chosen in enumerate((sorted(weights)[::2], sorted(weights)[1::2])):
        save_file({name: weights[name] for name in chosen}, base / f"part-{number}.safetensors", metadata={"format": "pt"})
        names |= dict.fromkeys(chosen, f"part-{number}.safetensors")
    (base / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    one.unlink()
    _trained_on(version, base)
    _, on_version = sampled(base, [reader_of(tmp_path, base).read(version, digest=None)])
    export_merged(version, tmp_path / "merged", weights=base, tokenizer=base)
    assert sorted(path.name for path in (tmp_path / "merged").glob("*.safetensors")) == [
        "part-0.safetensors",
        "part-1.safetensors",
    ]
    assert worst_gap(plain(tmp_path / "merged"), on_version) <= BOUND


def _trained_on(version: Path, base: Path) -> None:
    manifest = version / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"base_digest": weights_digest(base)}))


def test_merged_weights_keep_the_base_models_type_unless_told(tmp_path):
    version = trained_version(tmp_path, LoraSpec())
    export_merged(version, tmp_path / "own", weights=WEIGHTS, tokenizer=WEIGHTS)
    export_merged(version, tmp_path / "wide", weights=WEIGHTS, tokenizer=WEIGHTS, dtype=torch.float32)
    for name, dtype in (("own", torch.bfloat16), ("wide", torch.float32)):
        assert {tensor.dtype for tensor in load_file(tmp_path / name / "model.safetensors").values()} == {dtype}
        assert json.loads((tmp_path / name / "config.json").read_text())["dtype"] == str(dtype).removeprefix("torch.")


def test_what_cannot_be_exported_is_refused_and_leaves_nothing(tmp_path):
    version, out = trained_version(tmp_path, LoraSpec()), tmp_path / "out"
    other = make_model(tmp_path / "other")
    with pytest.raises(ExportError, match="does not hold the weights of tiny"):
        export_merged(version, out, weights=other, tokenizer=other)
    with pytest.raises(ExportError, match="no committed adapter version"):
        export_adapter(tmp_path, out)
    damaged = tmp_path / "damaged"
    shutil.copytree(version, damaged)
    (damaged / "adapter_model.safetensors").write_bytes(b"x")
    with pytest.raises(ValueError, match="not the file that its manifest names"):
        export_adapter(damaged, out)
    assert not out.exists() and not list(tmp_path.glob(".out*"))
    export_adapter(version, out)
    refused = export_command(version, "--to", out)
    assert (refused.returncode, refused.stdout) == (1, "") and "exists already" in refused.stderr

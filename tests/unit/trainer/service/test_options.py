"""What the trainer's command line makes of its pool."""

import pytest
import torch

from trainer.service.__main__ import build_desk, parse
from workers.embedded.services import TRAINER_OPTIONS_VARIABLE, trainer_options


def built(tmp_path, *words: str):
    return build_desk(parse(["--model", "tiny", "--artifacts", str(tmp_path), "--port", "1", *words])).pool


def test_a_pool_computes_in_float32_and_keeps_activations_unless_told_otherwise(tmp_path):
    pool = built(tmp_path)
    assert (pool.model.dtype, pool.model.device.type, pool.limits.recompute) == (torch.float32, "cpu", False)


def test_a_bfloat16_base_leaves_adapters_in_float32(tmp_path):
    pool = built(tmp_path, "--base-dtype", "bfloat16", "--recompute")
    assert (pool.model.dtype, pool.adapter_dtype, pool.limits.recompute) == (torch.bfloat16, torch.float32, True)


def test_words_for_the_trainer_reach_it_through_the_one_machine_stack(tmp_path, monkeypatch):
    monkeypatch.setenv(TRAINER_OPTIONS_VARIABLE, "--recompute --pack-tokens 64")
    pool = built(tmp_path, "--pack-tokens", "512", *trainer_options())
    assert (pool.limits.recompute, pool.limits.pack_tokens) == (True, 64)


def test_an_unknown_type_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        built(tmp_path, "--base-dtype", "float8")
    assert "--base-dtype" in capsys.readouterr().err

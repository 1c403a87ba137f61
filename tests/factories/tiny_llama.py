"""A random Llama of a few thousand parameters, its byte tokenizer, and adapters for it: real files, no shipped weights.

Everything follows from a seed. The tokenizer and the template are those of a byte-level ChatML model with Hermes tool calls.
"""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from trainer.contracts.adapters import CONFIG_NAME, MANIFEST_NAME, WEIGHTS_NAME, AdapterManifest, FileEntry, LoraSpec
from trainer.contracts.base import new_id
from trainer.contracts.catalogue import BaseModelSpec, ModelPrices

MARKERS = ("<|pad|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
PAD, TURN_START, TURN_END = 256, 257, 258
VOCABULARY = 261
CHAT_TEMPLATE = (
    "{%- if tools %}<|im_start|>system\ntools:{% for tool in tools %} {{ tool.function.name }}{% endfor %}<|im_end|>\n{% endif %}"
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "{% if message.tool_calls %}{% for call in message.tool_calls %}"
    '<tool_call>{"name":"{{ call.function.name }}","arguments":'
    '{{ call.function.arguments | tojson(separators=(",", ":")) }}}</tool_call>'
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "vocab_size": VOCABULARY,
    "eos_token_id": TURN_END,
    "pad_token_id": PAD,
    "attention_bias": False,
    "mlp_bias": False,
}


def make_model(
    folder: Path,
    seed: int = 0,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    **config: object,
) -> Path:
    """A HF model folder: config.json, model.safetensors, tokenizer. `config` overrides the shape; `device` draws the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    merged = CONFIG | config
    (folder / "config.json").write_text(json.dumps(merged))
    weights = {name: drawn.to(dtype) for name, drawn in _weights(merged, torch.Generator(device).manual_seed(seed)).items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    write_tokenizer(folder)
    return folder


def _weights(config: dict, generator: torch.Generator) -> dict[str, torch.Tensor]:
    hidden = config["hidden_size"]

    def drawn(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator, device=generator.device)

    def normal(*size: int) -> torch.Tensor:
        return drawn(*size) * size[-1] ** -0.5

    state = {"model.embed_tokens.weight": drawn(config["vocab_size"], hidden) * 0.5}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for name, (width_in, width_out) in _linears(config).items():
            state[f"{prefix}{name}.weight"] = normal(width_out, width_in)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            state[f"{prefix}{norm}.weight"] = 1 + 0.1 * drawn(hidden)
    state["model.norm.weight"] = 1 + 0.1 * drawn(hidden)
    if not config["tie_word_embeddings"]:
        # Far from uniform, and untied so that greedy answers wander: a wrong number then changes the tokens.
        state["lm_head.weight"] = 3 * normal(config["vocab_size"], hidden)
    return state


def _linears(config: dict) -> dict[str, tuple[int, int]]:
    hidden, wide = config["hidden_size"], config["intermediate_size"]
    q, kv = config["num_attention_heads"] * config["head_dim"], config["num_key_value_heads"] * config["head_dim"]
    return {
        "self_attn.q_proj": (hidden, q),
        "self_attn.k_proj": (hidden, kv),
        "self_attn.v_proj": (hidden, kv),
        "self_attn.o_proj": (q, hidden),
        "mlp.gate_proj": (hidden, wide),
        "mlp.up_proj": (hidden, wide),
        "mlp.down_proj": (wide, hidden),
    }


def write_tokenizer(folder: Path) -> None:
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable} | {chr(256 + rank): byte for rank, byte in enumerate(hidden)}
    backend = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(list(MARKERS[:3]))
    backend.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKERS[3:]])
    backend.save(str(folder / "tokenizer.json"))
    config = {"eos_token": MARKERS[2], "pad_token": MARKERS[0], "chat_template": CHAT_TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def model_spec(folder: Path, **overrides: object) -> BaseModelSpec:
    """A catalogue entry for a folder that `make_model` wrote."""
    prices = ModelPrices(input="0.02", output="0.06", training="0.06")
    entry = {
        "id": "random",
        "display_name": "Random",
        "description": "Random weights",
        "license": "none",
        "weights": str(folder),
        "tokenizer": str(folder),
        "renderer": {},
        "tool_parser": "hermes",
        "context_tokens": 256,
        "target_modules": TARGETS,
        "rank_max": 64,
        "prices_usd_per_mtok": prices,
    }
    return BaseModelSpec(**(entry | overrides))


def adapter_tensors(
    model: Path, *, seed: int, rank: int = 8, targets: tuple[str, ...] = TARGETS, strength: float = 1.0
) -> dict[str, torch.Tensor]:
    """PEFT-named lora_A and lora_B with B ≠ 0, so that an adapter that is not applied is seen."""
    config, generator, tensors = json.loads((model / "config.json").read_text()), torch.Generator().manual_seed(seed), {}
    for layer in range(config["num_hidden_layers"]):
        for name, (width_in, width_out) in _linears(config).items():
            if name.split(".")[1] in targets:
                prefix = f"base_model.model.model.layers.{layer}.{name}"
                tensors[f"{prefix}.lora_A.weight"] = torch.randn(rank, width_in, generator=generator) * width_in**-0.5
                tensors[f"{prefix}.lora_B.weight"] = torch.randn(width_out, rank, generator=generator) * strength * rank**-0.5
    return tensors


def write_adapter(
    folder: Path,
    model: Path,
    *,
    seed: int = 1,
    rank: int = 8,
    alpha: float = 16.0,
    targets: tuple[str, ...] = TARGETS,
    tensors: dict[str, torch.Tensor] | None = None,
    config: dict[str, object] | None = None,
) -> str:
    """One committed adapter version. Returns its digest. `tensors` and `config` replace what would be written."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors or adapter_tensors(model, seed=seed, rank=rank, targets=targets), folder / WEIGHTS_NAME)
    peft = {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "target_modules": list(targets), "bias": "none"}
    peft |= {"task_type": "CAUSAL_LM", "base_model_name_or_path": str(model), "lora_dropout": 0.0}
    (folder / CONFIG_NAME).write_text(json.dumps(peft | (config or {})))
    digest = hashlib.sha256((folder / WEIGHTS_NAME).read_bytes()).hexdigest()
    manifest = AdapterManifest(
        run_id=new_id(),
        team_id=new_id(),
        version=1,
        base_model="random",
        base_digest=hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest(),
        lora=LoraSpec(rank=rank, alpha=alpha, target_modules=targets),
        adapter_digest=digest,
        files={WEIGHTS_NAME: FileEntry(sha256=digest, size_bytes=(folder / WEIGHTS_NAME).stat().st_size)},
        created_at=datetime.now(UTC),
    )
    (folder / MANIFEST_NAME).write_text(manifest.model_dump_json())
    return digest

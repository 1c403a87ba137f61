"""Llama's forward pass over a mixed batch of prompt and decode tokens. Knows weights and shapes.

Refuses to know requests, sampling and adapters' identities: the KV cache and the LoRA segments are handed in.
Suffixes: _T token of the step, _B row, _Q query of a row, _K key of a row, _V vocabulary.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from trainer.inference.batch import AttentionGroup, StepBatch
from trainer.inference.lora import LoraSegments


@dataclass(frozen=True, slots=True)
class LlamaShape:
    """The numbers of a HF `config.json` that the forward pass needs."""

    vocabulary: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int
    rms_eps: float
    rope_theta: float
    tied: bool

    @property
    def q_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_dim

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "LlamaShape":
        """Raises ValueError for a variant that this forward pass would compute wrongly."""
        _refuse_variants(config)
        heads = config["num_attention_heads"]
        return cls(
            vocabulary=config["vocab_size"],
            hidden=config["hidden_size"],
            intermediate=config["intermediate_size"],
            layers=config["num_hidden_layers"],
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            context=config["max_position_embeddings"],
            rms_eps=config["rms_norm_eps"],
            rope_theta=float(config.get("rope_theta") or _rope(config).get("rope_theta", 10_000.0)),
            tied=config.get("tie_word_embeddings", False),
        )


def _rope(config: dict[str, Any]) -> dict[str, Any]:
    return config.get("rope_parameters") or config.get("rope_scaling") or {}


def _refuse_variants(config: dict[str, Any]) -> None:
    wanted = {"model_type": "llama", "hidden_act": "silu", "attention_bias": False, "mlp_bias": False}
    for name, value in wanted.items():
        if config.get(name, value) != value:
            raise ValueError(f"config.json has {name} = {config[name]!r}; this engine computes {value!r} only")
    kind = _rope(config).get("rope_type", "default")
    if kind != "default":
        raise ValueError(f"config.json has rope_type = {kind!r}; this engine computes 'default' only")


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One block. q, k, v and gate, up are fused: half the matmul calls."""

    attention_norm: Tensor
    qkv: Tensor
    o: Tensor
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor


class Llama:
    """Frozen base weights on one device. `forward` is pure but for the KV rows it writes."""

    def __init__(self, shape: LlamaShape, state: dict[str, Tensor], *, device: torch.device, dtype: torch.dtype):
        self.shape = shape
        self.device = device
        self.dtype = dtype

        def take(name: str) -> Tensor:
            return state[name].to(device=device, dtype=dtype)

        self.embedding = take("model.embed_tokens.weight")
        self.final_norm = take("model.norm.weight")
        self.head = self.embedding if shape.tied else take("lm_head.weight")
        self.layers = [_layer(take, f"model.layers.{index}.") for index in range(shape.layers)]
        self._cos_PD, self._sin_PD = _rope_tables(shape, device, dtype)

    def forward(self, batch: StepBatch, cache: list[Tensor], lora: LoraSegments) -> Tensor:
        """Final hidden states [T, hidden]. Writes the step's keys and values into `cache` first, so that a token sees itself."""
        x_T = F.embedding(batch.token_ids_T, self.embedding)
        cos_T = self._cos_PD[batch.positions_T].unsqueeze(1)
        sin_T = self._sin_PD[batch.positions_T].unsqueeze(1)
        for index, layer in enumerate(self.layers):
            h_T = self._norm(x_T, layer.attention_norm)
            qkv_T = F.linear(h_T, layer.qkv)
            lora.add_delta(qkv_T, h_T, index, "qkv")
            self._rotate_in_place(qkv_T, cos_T, sin_T)
            cache[index].index_copy_(0, batch.cache_rows_T, qkv_T[:, self.shape.q_width :])
            attended_T = self._attend(qkv_T[:, : self.shape.q_width], cache[index], batch)
            x_T = x_T + self._project(attended_T, layer.o, lora, index, "o")
            h_T = self._norm(x_T, layer.mlp_norm)
            gate_T, up_T = self._project(h_T, layer.gate_up, lora, index, "gate_up").chunk(2, dim=-1)
            x_T = x_T + self._project(F.silu(gate_T) * up_T, layer.down, lora, index, "down")
        return self._norm(x_T, self.final_norm)

    def logits(self, hidden_B: Tensor) -> Tensor:
        """[B, V] in fp32, whatever the weights' dtype: log-probabilities are compared with the trainer's."""
        return F.linear(hidden_B, self.head).float()

    def _project(self, x_T: Tensor, weight: Tensor, lora: LoraSegments, index: int, target: str) -> Tensor:
        out_T = F.linear(x_T, weight)
        lora.add_delta(out_T, x_T, index, target)
        return out_T

    def _norm(self, x_T: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x_T, (self.shape.hidden,), weight, self.shape.rms_eps)

    def _rotate_in_place(self, qkv_T: Tensor, cos_T: Tensor, sin_T: Tensor) -> None:
        """Rotary embedding of q and k in one go: they lie side by side in the fused projection."""
        shape = self.shape
        qk_T = qkv_T[:, : shape.q_width + shape.kv_width].unflatten(-1, (shape.heads + shape.kv_heads, shape.head_dim))
        low_T, high_T = qk_T.chunk(2, dim=-1)
        qk_T.copy_(qk_T * cos_T + torch.cat((-high_T, low_T), dim=-1) * sin_T)

    def _attend(self, q_T: Tensor, cache: Tensor, batch: StepBatch) -> Tensor:
        if len(batch.groups) == 1 and batch.groups[0].is_whole:
            return self._attend_group(q_T, cache, batch.groups[0])
        out_T = torch.empty_like(q_T)
        for group in batch.groups:
            attended = self._attend_group(q_T[group.query_rows], cache, group)
            out_T[group.out_rows] = attended[group.valid_rows]
        return out_T

    def _attend_group(self, q_rows: Tensor, cache: Tensor, group: AttentionGroup) -> Tensor:
        """[B·Q, q_width] → [B·Q, q_width]. Keys are gathered by block, never by token."""
        shape, (rows, queries) = self.shape, group.size
        blocks = cache.view(-1, group.block_tokens * 2 * shape.kv_width)
        kv = blocks.index_select(0, group.block_ids).view(rows, -1, 2, shape.kv_heads, shape.head_dim)
        attended = F.scaled_dot_product_attention(
            q_rows.view(rows, queries, shape.heads, shape.head_dim).transpose(1, 2),
            kv[:, :, 0].transpose(1, 2),
            kv[:, :, 1].transpose(1, 2),
            attn_mask=group.mask_B1QK,
            enable_gqa=shape.heads != shape.kv_heads,
        )
        return attended.transpose(1, 2).reshape(rows * queries, shape.q_width)


def _layer(take: Any, prefix: str) -> LayerWeights:
    attention, mlp = prefix + "self_attn.", prefix + "mlp."
    return LayerWeights(
        attention_norm=take(prefix + "input_layernorm.weight"),
        qkv=torch.cat([take(f"{attention}{name}_proj.weight") for name in "qkv"]),
        o=take(attention + "o_proj.weight"),
        mlp_norm=take(prefix + "post_attention_layernorm.weight"),
        gate_up=torch.cat([take(f"{mlp}{name}_proj.weight") for name in ("gate", "up")]),
        down=take(mlp + "down_proj.weight"),
    )


def _rope_tables(shape: LlamaShape, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """cos and sin [context, head_dim], computed in fp32 as the reference implementation does."""
    exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.int64).float() / shape.head_dim
    angles = torch.outer(torch.arange(shape.context).float(), 1.0 / shape.rope_theta**exponents)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(device, dtype), angles.sin().to(device, dtype)


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a HF model folder, in the order of their names."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(f"no safetensors file in {folder}")
    return files


def load_llama(folder: Path, *, device: torch.device, dtype: torch.dtype, context_max: int | None = None) -> Llama:
    """`context_max` serves fewer tokens than the model was made for: cache and tables are sized by it."""
    shape = LlamaShape.from_config(json.loads((folder / "config.json").read_text()))
    shape = replace(shape, context=min(shape.context, context_max or shape.context))
    state = {name: tensor for path in weight_files(folder) for name, tensor in load_file(path).items()}
    return Llama(shape, state, device=device, dtype=dtype)

"""The base model: a Llama in plain torch, frozen, over packed rows.

Knows rotary positions, grouped-query attention, RMS norms and tied embeddings, and reads Hugging Face's config.json and
safetensors. Refuses to know gradients of its own weights, adapters beyond what they add, and sampling.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from trainer.core.adapters import SITES, AdapterStack, TargetShape
from trainer.core.layout import AttentionBlock, Layout, width_of


@dataclass(frozen=True)
class LlamaShape:
    """Sizes from config.json."""

    vocabulary_size: int
    hidden_size: int
    mlp_size: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    rope_theta: float
    norm_eps: float
    context_tokens: int

    @classmethod
    def read(cls, folder: Path) -> "LlamaShape":
        """Raises ValueError for anything that this implementation does not compute."""
        config: dict[str, Any] = json.loads((folder / "config.json").read_text())
        _refuse_unsupported(config)
        heads = config["num_attention_heads"]
        rope = config.get("rope_parameters") or {}
        return cls(
            vocabulary_size=config["vocab_size"],
            hidden_size=config["hidden_size"],
            mlp_size=config["intermediate_size"],
            layers=config["num_hidden_layers"],
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_size=config.get("head_dim") or config["hidden_size"] // heads,
            rope_theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0),
            norm_eps=config["rms_norm_eps"],
            context_tokens=config["max_position_embeddings"],
        )

    def targets(self) -> tuple[TargetShape, ...]:
        """Every linear map that an adapter can attach to, layer by layer."""
        hidden, query, kv = self.hidden_size, self.heads * self.head_size, self.kv_heads * self.head_size
        sizes = {
            "q_proj": (hidden, query),
            "k_proj": (hidden, kv),
            "v_proj": (hidden, kv),
            "o_proj": (query, hidden),
            "gate_proj": (hidden, self.mlp_size),
            "up_proj": (hidden, self.mlp_size),
            "down_proj": (self.mlp_size, hidden),
        }
        return tuple(TargetShape(layer, name, *size) for layer in range(self.layers) for name, size in sizes.items())


def _refuse_unsupported(config: dict[str, Any]) -> None:
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    refused = {
        f"model_type {config.get('model_type')!r}": config.get("model_type") != "llama",
        "attention_bias": bool(config.get("attention_bias")),
        "mlp_bias": bool(config.get("mlp_bias")),
        f"hidden_act {config.get('hidden_act')!r}": config.get("hidden_act", "silu") != "silu",
        "scaled rotary positions": rope.get("rope_type", rope.get("type", "default")) != "default",
    }
    named = [what for what, present in refused.items() if present]
    if named:
        raise ValueError(f"this model is not supported: {', '.join(named)}")


MODULE_OF = {"q_proj": "self_attn", "k_proj": "self_attn", "v_proj": "self_attn", "o_proj": "self_attn"}


def module_path(target: TargetShape) -> str:
    """A target's name in Hugging Face's module tree."""
    return f"model.layers.{target.layer}.{MODULE_OF.get(target.name, 'mlp')}.{target.name}"


@dataclass(frozen=True)
class LlamaLayer:
    """Weights of one block; maps that read the same input are fused along their outputs."""

    attention_norm_H: Tensor
    attention_in: Tensor
    attention_out: Tensor
    mlp_norm_H: Tensor
    mlp_in: Tensor
    mlp_out: Tensor


class Llama:
    """Frozen weights and the packed forward pass. Holds one copy, whatever the number of adapters."""

    def __init__(self, folder: Path, dtype: torch.dtype = torch.float32) -> None:
        self.shape = LlamaShape.read(folder)
        self.dtype = dtype
        self.targets = self.shape.targets()
        self._files = [_StoredFile(path) for path in sorted(folder.glob("*.safetensors"))]
        stored = {name: tensor for file in self._files for name, tensor in load_file(file.path).items()}
        if not stored:
            raise FileNotFoundError(f"no safetensors file in {folder}")
        self._stored_dtype = {name: tensor.dtype for name, tensor in stored.items()}
        self._live: dict[str, Tensor] = {}
        self.embedding_VH = self._plain(stored, "model.embed_tokens.weight")
        tied = "lm_head.weight" not in stored
        self.head_VH = self.embedding_VH if tied else self._plain(stored, "lm_head.weight")
        self.norm_H = self._plain(stored, "model.norm.weight")
        self.layers = [self._layer(stored, index) for index in range(self.shape.layers)]
        self._cosine, self._sine = _rotary_table(self.shape, dtype)

    def hidden(self, layout: Layout, adapters: AdapterStack) -> Tensor:
        """Last hidden states of every flat token [T, H], before the final norm."""
        x_TH = self.embedding_VH[layout.token_ids_T]
        for index, layer in enumerate(self.layers):
            normed = self._norm(x_TH, layer.attention_norm_H)
            fused = _adapted(normed, layer.attention_in, adapters.delta(index, "attention_in", normed))
            mixed = self._attend(fused, layout)
            x_TH = x_TH + _adapted(mixed, layer.attention_out, adapters.delta(index, "attention_out", mixed))
            normed = self._norm(x_TH, layer.mlp_norm_H)
            gate, up = _adapted(normed, layer.mlp_in, adapters.delta(index, "mlp_in", normed)).chunk(2, dim=-1)
            inner = functional.silu(gate) * up
            x_TH = x_TH + _adapted(inner, layer.mlp_out, adapters.delta(index, "mlp_out", inner))
        return x_TH

    def logits(self, hidden_PH: Tensor) -> Tensor:
        """Logits [P, V] of chosen rows of `hidden`: callers ask for those alone that a loss needs."""
        return functional.linear(self._norm(hidden_PH, self.norm_H), self.head_VH)

    def digest_now(self) -> str:
        """The sha256 that `weights_digest` computes from the files, recomputed from the live tensors.

        Each tensor is hashed in the type it is stored in, at its place in the file; one that no longer is exactly a value
        of that type is hashed as it is, so that the smallest change shows.
        """
        digests = [file.digest(self._live, self._stored_dtype) for file in self._files]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def _norm(self, x_TH: Tensor, weight_H: Tensor) -> Tensor:
        return functional.rms_norm(x_TH, (x_TH.shape[-1],), weight_H, self.shape.norm_eps)

    def _attend(self, fused_TD: Tensor, layout: Layout) -> Tensor:
        """Causal attention inside each sample: [T, (heads + 2 kv_heads) × head] -> [T, heads × head]."""
        mixed = [self._attend_block(fused_TD, block) for block in layout.blocks]
        return (mixed[0] if len(mixed) == 1 else torch.cat(mixed)).index_select(0, layout.restore_T)

    def _attend_block(self, fused_TD: Tensor, block: AttentionBlock) -> Tensor:
        """A row holds one sample from its first token on, so a column is a position; or several that begin alike, and then the
        block says which positions and what is visible."""
        shape, width = self.shape, block.width
        rows = fused_TD.index_select(0, block.gather).view(block.rows, width, -1, shape.head_size)
        turning, value = torch.split(rows, [shape.heads + shape.kv_heads, shape.kv_heads], dim=2)
        places = slice(width) if block.positions is None else block.positions
        turned = _rotate(turning, self._cosine[places], self._sine[places])
        query, key = torch.split(turned, [shape.heads, shape.kv_heads], dim=2)
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        if shape.heads != shape.kv_heads:
            key, value = (x.repeat_interleave(shape.heads // shape.kv_heads, dim=1) for x in (key, value))
        plain = block.visible is None
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=block.visible, is_causal=plain)
        return mixed.transpose(1, 2).reshape(block.rows * width, -1)

    def _plain(self, stored: dict[str, Tensor], name: str) -> Tensor:
        tensor = stored[name].to(self.dtype)
        self._live[name] = tensor
        return tensor

    def _fused(self, stored: dict[str, Tensor], layer: int, site: str) -> Tensor:
        paths = [f"{module_path(TargetShape(layer, name, 0, 0))}.weight" for name in SITES[site]]
        parts = [stored[path] for path in paths]
        fused = torch.cat(parts).to(self.dtype)
        self._live |= dict(zip(paths, torch.split(fused, [len(part) for part in parts]), strict=True))
        return fused

    def _layer(self, stored: dict[str, Tensor], index: int) -> LlamaLayer:
        return LlamaLayer(
            attention_norm_H=self._plain(stored, f"model.layers.{index}.input_layernorm.weight"),
            mlp_norm_H=self._plain(stored, f"model.layers.{index}.post_attention_layernorm.weight"),
            **{site: self._fused(stored, index, site) for site in SITES},
        )


def _adapted(x_TI: Tensor, weight_OI: Tensor, delta_TO: Tensor | None) -> Tensor:
    base = functional.linear(x_TI, weight_OI)
    return base if delta_TO is None else base + delta_TO


def _rotary_table(shape: LlamaShape, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines [positions, 1, head / 2], as many as the widest attention row; angles in float32, as Hugging Face
    computes them."""
    exponents = torch.arange(0, shape.head_size, 2, dtype=torch.float32) / shape.head_size
    positions = torch.arange(width_of(shape.context_tokens), dtype=torch.float32)
    angles = (positions[:, None] / shape.rope_theta**exponents)[:, None, :]
    return angles.cos().to(dtype), angles.sin().to(dtype)


def _rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


class _StoredFile:
    """A safetensors file's header: where each tensor lies, and the bytes before the first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            size = file.read(8)
            self._head = size + file.read(int.from_bytes(size, "little"))
        entries = json.loads(self._head[8:])
        entries.pop("__metadata__", None)
        self._order = sorted(entries, key=lambda name: entries[name]["data_offsets"][0])

    def digest(self, live: dict[str, Tensor], stored_dtype: dict[str, torch.dtype]) -> str:
        digest = hashlib.sha256(self._head)
        for name in self._order:
            stored = live[name].to(stored_dtype[name])
            exact = torch.equal(stored.to(live[name].dtype), live[name])
            digest.update((stored if exact else live[name]).contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

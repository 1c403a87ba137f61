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
from torch.utils.checkpoint import checkpoint

from trainer.core.adapter_stack import SITES, AdapterStack
from trainer.core.adapters import TargetShape
from trainer.core.layout import WIDTH_STEP, Layout
from trainer.core.operations import adapted_linear, flat_of, gated_unit, heads_of, rms_norm


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

    def __init__(self, folder: Path, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> None:
        self.shape = LlamaShape.read(folder)
        self.dtype = dtype
        self.device = torch.device(device)
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
        self._angles = _rotary_table(self.shape, dtype, self.device)
        self._anchor = torch.zeros((), device=self.device, requires_grad=True)

    def hidden(self, layout: Layout, adapters: AdapterStack, *, recompute: bool = False) -> Tensor:
        """Last hidden states of every flat token [T, H], before the final norm.

        With `recompute` a layer keeps its input alone and is computed again in the backward pass: the same gradients for a third
        more work, and memory that does not grow with a layer's width.
        """
        x_TH = self.embedding_VH[layout.token_ids_T]
        for index in range(len(self.layers)):
            if recompute and torch.is_grad_enabled():
                x_TH = checkpoint(self._layer_out, x_TH, index, layout, adapters, use_reentrant=False, preserve_rng_state=False)
            else:
                x_TH = self._layer_out(x_TH, index, layout, adapters)
        return x_TH

    def last_norm(self, hidden_PH: Tensor) -> Tensor:
        """What `head_VH` is multiplied with: callers ask for those rows of `hidden` alone that a loss needs."""
        return rms_norm(hidden_PH, self.norm_H, self.shape.norm_eps)

    def logits(self, hidden_PH: Tensor) -> Tensor:
        """Logits [P, V] of chosen rows of `hidden`."""
        return functional.linear(self.last_norm(hidden_PH), self.head_VH)

    def digest_now(self) -> str:
        """The sha256 that `weights_digest` computes from the files, recomputed from the live tensors.

        Each tensor is hashed in the type it is stored in, at its place in the file; one that no longer is exactly a value
        of that type is hashed as it is, so that the smallest change shows.
        """
        digests = [file.digest(self._live, self._stored_dtype) for file in self._files]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def _layer_out(self, x_TH: Tensor, index: int, layout: Layout, adapters: AdapterStack) -> Tensor:
        layer, eps = self.layers[index], self.shape.norm_eps

        def site(name: str, x: Tensor, weight: Tensor, residual: Tensor | None = None) -> Tensor:
            return adapted_linear(x, weight, adapters.at(index, name), anchor=self._anchor, residual_TO=residual)

        fused = site("attention_in", rms_norm(x_TH, layer.attention_norm_H, eps), layer.attention_in)
        x_TH = site("attention_out", self._attend(fused, layout), layer.attention_out, x_TH)
        fused = site("mlp_in", rms_norm(x_TH, layer.mlp_norm_H, eps), layer.mlp_in)
        return site("mlp_out", gated_unit(fused), layer.mlp_out, x_TH)

    def _attend(self, fused_TD: Tensor, layout: Layout) -> Tensor:
        """Causal attention inside each sample: [T, (heads + 2 kv_heads) × head] -> [T, heads × head]."""
        turned = heads_of(fused_TD, layout, self._angles, self.shape.heads, self.shape.kv_heads)
        mixed = []
        for block, (query, key, value) in zip(layout.blocks, turned, strict=True):
            plain = block.visible is None
            mixed.append(functional.scaled_dot_product_attention(query, key, value, attn_mask=block.visible, is_causal=plain))
        return flat_of(layout, mixed)

    def _plain(self, stored: dict[str, Tensor], name: str) -> Tensor:
        tensor = stored[name].to(self.device, self.dtype)
        self._live[name] = tensor
        return tensor

    def _fused(self, stored: dict[str, Tensor], layer: int, site: str) -> Tensor:
        paths = [f"{module_path(TargetShape(layer, name, 0, 0))}.weight" for name in SITES[site]]
        parts = [stored[path] for path in paths]
        fused = torch.cat(parts).to(self.device, self.dtype)
        self._live |= dict(zip(paths, torch.split(fused, [len(part) for part in parts]), strict=True))
        return fused

    def _layer(self, stored: dict[str, Tensor], index: int) -> LlamaLayer:
        return LlamaLayer(
            attention_norm_H=self._plain(stored, f"model.layers.{index}.input_layernorm.weight"),
            mlp_norm_H=self._plain(stored, f"model.layers.{index}.post_attention_layernorm.weight"),
            **{site: self._fused(stored, index, site) for site in SITES},
        )


def _rotary_table(shape: LlamaShape, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines [positions, 1, head / 2], as many as the last column of an attention row; angles in float32, as Hugging
    Face computes them."""
    exponents = torch.arange(0, shape.head_size, 2, dtype=torch.float32) / shape.head_size
    positions = torch.arange(shape.context_tokens + WIDTH_STEP, dtype=torch.float32)
    angles = (positions[:, None] / shape.rope_theta**exponents)[:, None, :]
    return angles.cos().to(device, dtype), angles.sin().to(device, dtype)


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
            held = live[name].cpu()
            stored = held.to(stored_dtype[name])
            exact = torch.equal(stored.to(held.dtype), held)
            digest.update((stored if exact else held).contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

"""From a GGUF file of a Llama to the folders that engine and trainer read.

Knows transformers' reader of quantised files. Refuses to know where a file comes from. The numbers are those of the quantised
file: widened, rounded to bfloat16 and not improved.
"""

from pathlib import Path

import gguf  # noqa: F401  (transformers' reader needs it, and says so less clearly than an ImportError here)
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM


def convert(file: Path, folder: Path) -> None:
    """Write `folder/weights` (config.json, model.safetensors in bfloat16) and `folder/tokenizer`."""
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    tokenizer.save_pretrained(folder / "tokenizer")
    _plain(model).save_pretrained(folder / "weights")
    (folder / "weights" / "generation_config.json").unlink(missing_ok=True)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)  # other users of the host serve from this folder


def _plain(model: LlamaForCausalLM) -> LlamaForCausalLM:
    """The same weights in a model that does not know of its quantisation: transformers refuses to save one that does."""
    config = model.config
    del config.quantization_config
    plain = LlamaForCausalLM(config)
    plain.load_state_dict(model.state_dict())
    return plain.to(torch.bfloat16)

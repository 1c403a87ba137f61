"""The byte tokenizer of the tiny model: the id of a byte is its value, five markers follow.

Knows the vocabulary and the ChatML rendering, as a Hugging Face tokenizer on disk and as two lines of Python. Refuses to
know what the model learns to say.
"""

import json
import re
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

MARKERS = ("<|pad|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
PAD, TURN_START, TURN_END, CALL_START, CALL_END = range(256, 261)
VOCABULARY_SIZE = 261
CONTEXT_TOKENS = 2048
NEWLINE = 10

_MARKER_ID = {text: 256 + index for index, text in enumerate(MARKERS)}
_SPLIT = re.compile("(" + "|".join(map(re.escape, MARKERS)) + ")")

# Tools are rendered as names and argument names only: a JSON schema costs one token a byte, which a context of this size
# cannot pay. Calls follow the Hermes format on a single line.
CHAT_TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n"
    "{% if messages[0].role == 'system' %}{{ messages[0].content }}\n{% endif %}tools:"
    "{% for tool in tools %}{% set spec = tool.function if tool.function is defined else tool %}"
    " {{ spec.name }}({{ spec.parameters.properties.keys() | join(',') }}){% endfor %}<|im_end|>\n{% endif %}"
    "{%- for message in messages %}{% if not (tools and loop.first and message.role == 'system') %}"
    "<|im_start|>{{ message.role }}\n{{ message.content if message.content else '' }}"
    "{% if message.tool_calls %}{% for call in message.tool_calls %}"
    "{% set spec = call.function if call.function is defined else call %}"
    '<tool_call>{"name":"{{ spec.name }}","arguments":'
    "{{ spec.arguments if spec.arguments is string else spec.arguments | tojson(separators=(',', ':')) }}}</tool_call>"
    "{% endfor %}{% endif %}<|im_end|>\n{% endif %}{% endfor %}"
    "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def encode(text: str) -> list[int]:
    """Ids of a text, markers included. Equals the tokenizer on disk, which a test checks."""
    ids: list[int] = []
    for piece in _SPLIT.split(text):
        ids += [_MARKER_ID[piece]] if piece in _MARKER_ID else piece.encode()
    return ids


def decode(ids: list[int]) -> str:
    pieces = (bytes([i]) if i < 256 else MARKERS[i - 256].encode() for i in ids)
    return b"".join(pieces).decode("utf-8", "replace")


def _byte_alphabet() -> dict[str, int]:
    """The printable stand-in for each byte that byte-level tokenizers use, mapped to the byte's value."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + rank): byte for rank, byte in enumerate(hidden)}


def save_tokenizer(folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json, chat template included, in the form that transformers 4 and 5 load."""
    backend = Tokenizer(models.BPE(vocab=_byte_alphabet(), merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(list(MARKERS[:3]))
    # The call markers are text that a client must see, so they are added but not special.
    backend.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKERS[3:]])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=MARKERS[2],
        pad_token=MARKERS[0],
        model_max_length=CONTEXT_TOKENS,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.save_pretrained(folder)
    config_path = folder / "tokenizer_config.json"
    config = json.loads(config_path.read_text())
    config |= {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": CHAT_TEMPLATE}
    config_path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")

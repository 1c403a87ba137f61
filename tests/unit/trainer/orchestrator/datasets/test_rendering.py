"""Which tokens of a row are learnt, by hand, with templates that break what is commonly assumed of them."""

import io
import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from trainer.contracts.catalogue import load_catalogue, model_folder
from trainer.contracts.datasets import DatasetRefused, RowRefused, parse_row
from trainer.contracts.run_config import DatasetRef
from trainer.inference.text import TextCodec
from trainer.orchestrator.datasets.rendering import RowRenderer
from trainer.orchestrator.datasets.rows import DatasetRows

MARK = "{{ '<u>' if m.role != 'assistant' else '<a>' }}"
TURNS = "{% for m in messages %}" + MARK + "{{ BODY }}{{ '</s>' if m.role == 'assistant' }}{% endfor %}"
PLAIN = TURNS.replace("BODY", "m.content")
THOUGHTS_OF_THE_LAST = TURNS.replace("BODY", "m.content if loop.last else m.content.split('</think>')[-1].lstrip()")
NO_THOUGHTS = TURNS.replace("BODY", "m.content.split('</think>')[-1].lstrip()")
PROMPT = "{% if add_generation_prompt %}<a>{% endif %}"
THINKING_PROMPT = "{% if add_generation_prompt %}<a><think>\n{% endif %}"


def codec_of(folder: Path, template: str) -> TextCodec:
    """One token per character, but for the marks."""
    marks = ["<u>", "<a>", "</s>", "<think>", "</think>"]
    letters = [chr(code) for code in range(32, 127)] + ["\n"]
    tokenizer = Tokenizer(models.WordLevel({text: index for index, text in enumerate([*marks, *letters])}, unk_token=" "))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.add_special_tokens(marks)
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template, "eos_token": "</s>"}))
    return TextCodec(folder)


def spoken(codec: TextCodec, row: dict, context_tokens: int = 200) -> list[str]:
    """Each stream's text, the learnt parts in brackets."""
    rendered = RowRenderer(codec, context_tokens=context_tokens).streams(parse_row(json.dumps(row).encode()))
    return [_marked(codec, stream) for stream in rendered]


def _marked(codec: TextCodec, stream) -> str:
    text, before = "", False
    for token, learnt in zip(stream.token_ids, stream.learnt, strict=True):
        text += ("[" if learnt and not before else "]" if before and not learnt else "") + codec.token_text(token)
        before = learnt
    return text + ("]" if before else "")


def chat(*contents: str) -> dict:
    return {"messages": [{"role": ("user", "assistant")[n % 2], "content": content} for n, content in enumerate(contents)]}


def test_every_reply_is_learnt_up_to_its_end_and_nothing_else(tmp_path: Path):
    codec = codec_of(tmp_path, PLAIN + PROMPT)
    assert spoken(codec, chat("hi", "yes", "so", "no")) == ["<u>hi<a>[yes</s>]<u>so<a>[no</s>]"]


def test_what_the_template_writes_behind_a_reply_is_not_learnt(tmp_path: Path):
    codec = codec_of(tmp_path, PLAIN.replace("'</s>'", "'</s>\n'") + PROMPT)
    assert spoken(codec, chat("hi", "yes", "so", "no")) == ["<u>hi<a>[yes</s>]\n<u>so<a>[no</s>]"]


def test_a_generation_prompt_of_several_tokens_is_measured(tmp_path: Path):
    """Case 16: the prompt begins the thought, and the template shows no thoughts."""
    codec = codec_of(tmp_path, NO_THOUGHTS + THINKING_PROMPT)
    assert spoken(codec, chat("hi", "<think>\nhm</think>\n\nyes")) == ["<u>hi<a><think>\n[hm</think>\n\nyes</s>]"]
    with pytest.raises(RowRefused, match=r"begins each reply with a thought \(<think>\), and this reply has none"):
        spoken(codec, chat("hi", "yes"))


def test_a_template_that_drops_earlier_thoughts_drops_no_row(tmp_path: Path):
    """Case 18: each reply is learnt once, behind the prompt that it will be asked with."""
    codec = codec_of(tmp_path, THOUGHTS_OF_THE_LAST + PROMPT)
    row = chat("hi", "<think>a</think>yes", "so", "<think>b</think>no")
    assert spoken(codec, row) == ["<u>hi<a>[<think>a</think>yes</s>]", "<u>hi<a>yes</s><u>so<a>[<think>b</think>no</s>]"]


def test_thoughts_that_no_rendering_shows_are_learnt_all_the_same(tmp_path: Path):
    codec = codec_of(tmp_path, NO_THOUGHTS + PROMPT)
    assert spoken(codec, chat("hi", "<think>a</think>yes")) == ["<u>hi<a>[<think>a</think>yes</s>]"]


def test_many_rows_of_tool_calls_under_a_think_template_are_all_kept(tmp_path: Path):
    """Case 18, counted: ten rows in, ten rows kept."""
    calls = "{% for c in m.tool_calls or [] %}{{ c.function.name }}({{ c.function.arguments.x }}){% endfor %}"
    body = "{{ m.content if loop.last else m.content.split('</think>')[-1] }}" + calls
    codec = codec_of(tmp_path, PLAIN.replace("{{ m.content }}", body) + PROMPT)
    call = {"type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    row = {
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "<think>a</think>", "tool_calls": [call]},
            {"role": "tool", "content": "7"},
            {"role": "assistant", "content": "<think>b</think>7"},
        ]
    }
    assert spoken(codec, row) == ["<u>go<a>[<think>a</think>f(1)</s>]", "<u>go<a>f(1)</s><u>7<a>[<think>b</think>7</s>]"]
    report = dataset(codec, [row] * 10).check()
    assert (report.kept, report.dropped) == (10, 0)


def test_raw_text_is_cut_to_the_context_and_each_token_learnt_once(tmp_path: Path):
    codec = codec_of(tmp_path, PLAIN + PROMPT)
    assert spoken(codec, {"text": "abcdefg"}, context_tokens=4) == ["</s>[abc]", "c[def]", "f[g</s>]"]


def test_the_tiny_models_own_template():
    codec = TextCodec(model_folder(load_catalogue()["tiny"].tokenizer))
    (text,) = spoken(codec, chat("1+1", "2", "2+2", "4"))
    user, assistant = "<|im_start|>user\n", "<|im_start|>assistant\n"
    assert text == f"{user}1+1<|im_end|>\n{assistant}[2<|im_end|>]\n{user}2+2<|im_end|>\n{assistant}[4<|im_end|>]"


def test_rows_beyond_the_context_are_dropped_with_their_line_and_refuse_the_set_when_too_many(tmp_path: Path):
    codec = codec_of(tmp_path, PLAIN + PROMPT)
    rows = dataset(codec, [chat("hi", "yes"), chat("hi", "y" * 300), chat("so", "no")], dropped_max=0.5)
    report = rows.check()
    assert (report.kept, report.dropped, report.problems[0].line) == (2, 1, 2)
    assert report.problems[0].reason == "longer than the model's context of 200 tokens"
    with pytest.raises(DatasetRefused, match="line 2: longer than"):
        dataset(codec, [chat("hi", "yes"), chat("hi", "y" * 300)], dropped_max=0.4).check()


def dataset(codec: TextCodec, rows: list[dict], **ref) -> DatasetRows:
    file = io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())
    renderer = RowRenderer(codec, context_tokens=200)
    return DatasetRows("d", DatasetRef(id="d", **ref), "chat", file, renderer, seed=1)

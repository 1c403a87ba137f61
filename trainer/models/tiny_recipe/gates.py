"""What a tiny base model must be able to do before it ships: name a rule and apply it, call a tool and report its answer.

Knows how a skill is measured. Refuses to know how the model was trained: the shipped weights and a fresh training pass
through the same gates.
"""

import json
import random
from dataclasses import dataclass

import torch
from transformers import LlamaForCausalLM

from trainer.models.tiny_recipe.lessons import RULES, TOOLS, Turn, prompt_of, question, tool_system
from trainer.models.tiny_recipe.tokenizer import CALL_END, CALL_START, PAD, TURN_END, decode

RULE_SKILL_MIN = 0.95
TOOL_SKILL_MIN = 0.90
DIALOGUES = 400
UNSEEN_SYSTEM_LINE = "Please reply to the user in a friendly tone, thanks!"


@dataclass(frozen=True)
class GateReport:
    """Shares of dialogues that went right at temperature 1."""

    rule_skill: float
    rule_skill_unseen_system: float
    tool_skill: float

    @property
    def passed(self) -> bool:
        rule = min(self.rule_skill, self.rule_skill_unseen_system)
        return rule >= RULE_SKILL_MIN and self.tool_skill >= TOOL_SKILL_MIN


@torch.no_grad()
def sample(model: LlamaForCausalLM, prompts: list[list[int]], max_new: int, generator: torch.Generator) -> list[list[int]]:
    """One reply per prompt at temperature 1, cut after the closing marker. Prompts are padded on the left."""
    width = max(map(len, prompts))
    current = torch.tensor([[PAD] * (width - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    cache, columns = None, []
    for _ in range(max_new):
        reply = model(
            input_ids=current,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        cache = reply.past_key_values
        current = torch.multinomial(reply.logits[:, -1].softmax(-1), 1, generator=generator)
        columns.append(current[:, 0])
        mask = torch.cat([mask, torch.ones_like(current)], dim=1)
        positions = positions[:, -1:] + 1
    return [row[: row.index(TURN_END) + 1] if TURN_END in row else row for row in torch.stack(columns, 1).tolist()]


def _closed_text(reply: list[int]) -> str:
    """The reply's text, or nothing when the model did not close its turn."""
    return decode(reply[:-1]) if reply and reply[-1] == TURN_END else ""


def _problems(seed: int, count: int) -> list[tuple[int, int]]:
    rng = random.Random(seed)
    return [(rng.randint(0, 9), rng.randint(0, 9)) for _ in range(count)]


def rule_is_right(text: str, x: int, y: int) -> bool:
    name, _, value = text.partition(" ")
    return name in RULES and value == str(RULES[name](x, y))


def rule_skill(model: LlamaForCausalLM, system: str | None = None, seed: int = 7, count: int = DIALOGUES) -> float:
    """Share of replies whose value is that of the rule they name."""
    problems = _problems(seed, count)
    head = [Turn("system", system)] if system else []
    prompts = [prompt_of([*head, Turn("user", question(x, y))]) for x, y in problems]
    replies = sample(model, prompts, 8, torch.Generator().manual_seed(seed))
    return sum(rule_is_right(_closed_text(r), x, y) for r, (x, y) in zip(replies, problems, strict=True)) / count


def called_tool(reply: list[int], x: int, y: int) -> str | None:
    """The name of the tool that the reply calls with exactly these arguments, else None."""
    if len(reply) < 3 or (reply[0], reply[-2], reply[-1]) != (CALL_START, CALL_END, TURN_END):
        return None
    try:
        call = json.loads(decode(reply[1:-2]))
    except json.JSONDecodeError:
        return None
    known = isinstance(call, dict) and call.get("name") in TOOLS and call.get("arguments") == {"a": x, "b": y}
    return str(call["name"]) if known else None


def tool_skill(model: LlamaForCausalLM, seed: int = 7, count: int = DIALOGUES) -> float:
    """Share of dialogues with a well-formed call on the right arguments and the tool's result as the answer."""
    generator = torch.Generator().manual_seed(seed)
    problems = _problems(seed, count)
    opened = [[Turn("system", tool_system(None)), Turn("user", question(x, y))] for x, y in problems]
    calls = sample(model, [prompt_of(turns) for turns in opened], 48, generator)
    called = [called_tool(reply, x, y) for reply, (x, y) in zip(calls, problems, strict=True)]
    asked = [
        (turns, reply, str(TOOLS[tool](x, y)))
        for turns, reply, tool, (x, y) in zip(opened, calls, called, problems, strict=True)
        if tool is not None
    ]
    if not asked:
        return 0.0
    prompts = [prompt_of([*t, Turn("assistant", _closed_text(r)), Turn("tool", result)]) for t, r, result in asked]
    answers = sample(model, prompts, 4, generator)
    return sum(_closed_text(a) == result for a, (_, _, result) in zip(answers, asked, strict=True)) / count


def measure(model: LlamaForCausalLM, count: int = DIALOGUES) -> GateReport:
    return GateReport(
        rule_skill=rule_skill(model, count=count),
        rule_skill_unseen_system=rule_skill(model, UNSEEN_SYSTEM_LINE, count=count),
        tool_skill=tool_skill(model, count=count),
    )

"""What tests want to see of the older interface: environments that are played, a row each, and such as nobody plays."""

import asyncio

import verifiers as vf
from datasets import Dataset
from openai import AsyncOpenAI


def load_environment(mode: str = "played") -> vf.Environment:
    """`played` is a group in a group of all that can be played, one row each, in the order of `PLAYED`."""
    if mode == "played":
        inner = vf.EnvGroup(envs=[make() for make in PLAYED.values()], env_names=list(PLAYED))
        return vf.EnvGroup(envs=[inner], env_names=["all"])
    return REFUSED[mode]()


def rows(*questions: str) -> Dataset:
    return Dataset.from_list([{"question": question, "answer": question.upper()} for question in questions])


def single(*functions, **options) -> vf.Environment:
    return vf.SingleTurnEnv(dataset=rows("a"), rubric=vf.Rubric(funcs=[one, *functions]), **options)


def one(completion) -> float:
    return 1.0


def raising(completion, answer) -> float:
    return {}["missing"]


def nothing(completion):
    return None


def not_a_number(completion) -> float:
    return float("nan")


async def slow(completion) -> float:
    await asyncio.sleep(600)
    return 1.0


def by_group(completions) -> list[float]:
    return [1.0 for _ in completions]


def leaving(completion) -> float:
    raise SystemExit(3)


class EchoEnv(vf.MultiTurnEnv):
    """Says back what was said, until its own number of turns is reached."""

    async def env_response(self, messages, state, **kwargs):
        return [{"role": "user", "content": f"you said {messages[-1]['content']}"}]


class RaisingEnv(EchoEnv):
    async def env_response(self, messages, state, **kwargs):
        raise LookupError("no such move")


def talk(kind=EchoEnv, **options) -> vf.Environment:
    return kind(dataset=rows("a"), rubric=vf.Rubric(funcs=[one]), **options)


def add(a: int, b: int) -> int:
    """The sum of two numbers.

    Args:
        a: the first
        b: the second
    """
    return a + b


def tools() -> vf.Environment:
    def answered(completion) -> float:
        return float(any(message["role"] == "tool" and message["content"] == "5" for message in completion))

    return vf.ToolEnv(dataset=rows("2+3"), rubric=vf.Rubric(funcs=[answered]), tools=[add], max_turns=4)


PLAYED = {
    "single": single,
    "echo": lambda: talk(max_turns=3),
    "endless": talk,
    "tools": tools,
    "raising": lambda: single(raising),
    "nothing": lambda: single(nothing),
    "nan": lambda: single(not_a_number),
    "slow": lambda: single(slow),
    "leaving": lambda: single(leaving),
    "raising-turn": lambda: talk(RaisingEnv),
}
REFUSED = {
    "unfit": lambda: vf.SingleTurnEnv(
        dataset=Dataset.from_list([{"example_id": 7, "question": " "}, {"example_id": 7, "question": "a"}]),
        rubric=vf.Rubric(funcs=[one]),
    ),
    "by-group": lambda: single(by_group),
    "judge": lambda: vf.SingleTurnEnv(dataset=rows("a"), rubric=vf.JudgeRubric()),
    "judge-with-key": lambda: vf.SingleTurnEnv(
        dataset=rows("a"), rubric=vf.JudgeRubric(judge_client=AsyncOpenAI(api_key="none"))
    ),
    "container": lambda: vf.PythonEnv(dataset=rows("a"), rubric=vf.Rubric(funcs=[one])),
    "unscored": lambda: single(score_rollouts=False),
    "completion": lambda: vf.SingleTurnEnv(
        dataset=Dataset.from_list([{"prompt": "once", "answer": ""}]), rubric=vf.Rubric(funcs=[one]), message_type="completion"
    ),
    "no-rows": lambda: vf.SingleTurnEnv(dataset=lambda: rows("a").select([]), rubric=vf.Rubric(funcs=[one])),
}

"""Whatever breaks between a rollout and its reward, at the engine, on the way, in the sandbox or in a judge: no failure becomes a
reward. None is trained, none is billed where it is ours, and what is good is trained with exactly its own reward.

Everything of the orchestrator is real down to the HTTP that its two links speak; engine and runner fail on demand.
"""

import asyncio
import json
import logging
import random
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest import mock

import pytest

from tests.fixtures.memory_link import Cut, MemoryPeer, call_app, reply
from tests.fixtures.orchestrator_world import BASE_DIGEST
from tests.fixtures.scripted_run import ScriptedEnvironment, ScriptedRun, good
from tests.fixtures.virtual_time import run_virtually
from trainer.contracts.events import Meter
from trainer.contracts.internal import Finish
from trainer.contracts.rollouts import GroupScoreRequest, GroupScores, RolloutEnd, RolloutRequest, TenantError
from trainer.contracts.run_config import RunConfig
from trainer.orchestrator import workplace
from trainer.orchestrator.attempt.endings import StaleLease
from trainer.orchestrator.engines.gate import EngineGate
from trainer.orchestrator.environments.runner_client import RunnerClient, RunnerSilent

GENERATE, CHAT = "/inference/v1/generate", "/v1/chat/completions"
SAID = 2
"""Tokens of one reply."""
TIMEOUT_S = 20.0

ENGINE = (
    *("reset", "cut head", "cut body", "no http", "500", "502", "503", "429", "401", "403", "409", "adapter missing"),
    *("broken json", "empty", "no json object", "nan logprob", "infinite logprob", "missing logprob", "one logprob too few"),
    *("two choices", "base weights", "other weights", "no identity", "no usage", "hang"),
)
"""What befalls a rollout's own model call."""
JUDGE = ("judge 503", "judge reset", "judge broken json", "judge other weights", "judge without usage")
"""What befalls the call of an environment that asks the model to judge, and takes a silent judge for a bad mark."""
RUNNER = ("runner reset", "runner garbage", "runner silent", "nan reward", "infinite reward", "no end", "killed")
"""What befalls the sandbox, and with it everything that it is at."""
TENANT = ("raises", "scoring timed out", "ok without a reward", "part without a reward", "no trace", "deadline", "no call")
"""What the environment does to itself."""


class Engine:
    """Answers the proxy's calls as the fate says that stands last in their prompt. `models` counts who was asked for."""

    def __init__(self, digests: dict[str, str]):
        self.digests = digests
        self.models: Counter[str] = Counter()
        self.peer = MemoryPeer(self.answer)

    async def answer(self, path: str, content: bytes) -> bytes:
        body = json.loads(content)
        self.models[body["model"]] += 1
        await asyncio.sleep(0.5)
        if path == CHAT:
            return await self._failed(body["messages"][-1]["content"], self._chat(body))
        fate = FATES[body["token_ids"][-1]]
        return await self._failed(fate, self._generated(body))

    def _identity(self, name: str) -> dict:
        return {"name": name, "digest": self.digests.get(name, "0" * 64)}

    def _generated(self, body: dict) -> dict:
        usage = {
            "prompt_tokens": len(body["token_ids"]),
            "completion_tokens": SAID,
            "total_tokens": len(body["token_ids"]) + SAID,
        }
        content = [{"token": "", "logprob": -0.5} for _ in range(SAID)]
        choice = {"index": 0, "token_ids": [49, 258], "logprobs": {"content": content}, "finish_reason": "stop"}
        named = {"id": "g", "request_id": "g", "model": body["model"], "adapter": self._identity(body["model"])}
        return named | {"choices": [choice], "usage": usage}

    def _chat(self, body: dict) -> dict:
        choice = {"index": 0, "message": {"role": "assistant", "content": "1"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": SAID, "total_tokens": 1 + SAID}
        return {"id": "c", "choices": [choice], "usage": usage, "adapter": self._identity(body["model"])}

    async def _failed(self, fate: str, said: dict) -> bytes:
        fate = fate.removeprefix("judge ")
        if fate == "hang":
            await asyncio.Event().wait()
        if fate.isdigit() or fate == "adapter missing":
            return reply(b'{"error": {"message": "as told"}}', int(fate) if fate.isdigit() else 404)
        whole = reply(json.dumps(_spoilt(fate, said)).encode())
        cuts = {"reset": 0, "cut head": 10, "cut body": len(whole) - 20}
        if fate in cuts:
            raise Cut(whole[: cuts[fate]])
        if fate == "no http":
            raise Cut(b"220 mail ready\r\n\r\n")
        bodies = {"broken json": json.dumps(said).encode()[:-30], "empty": b"", "no json object": b"[1]"}
        return reply(bodies[fate]) if fate in bodies else whole


def _spoilt(fate: str, said: dict) -> dict:
    """The engine's answer with one thing wrong."""
    choice = said["choices"][0]
    logprobs = {"nan logprob": [-0.5, float("nan")], "infinite logprob": [float("-inf"), -0.5], "one logprob too few": [-0.5]}
    if fate in logprobs:
        choice["logprobs"] = {"content": [{"token": "", "logprob": value} for value in logprobs[fate]]}
    if fate == "missing logprob":
        choice["logprobs"] = {"content": [{"token": ""}, {"token": "", "logprob": -0.5}]}
    if fate == "two choices":
        said["choices"].append(choice)
    if fate in {"base weights", "other weights"}:
        said["adapter"]["digest"] = BASE_DIGEST if fate == "base weights" else "f" * 64
    if fate in {"no identity", "no usage", "without usage"}:
        del said["adapter" if fate == "no identity" else "usage"]
    return said


@pytest.fixture(autouse=True)
def _quiet():
    """Each failure says so, which is not what is looked at here."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


FATES = ("good", *ENGINE, *JUDGE, *RUNNER, *TENANT)


class Sandboxes:
    """Plays each rollout to a fate drawn from one seed, over the runner's own protocol; keeps what came of whom."""

    def __init__(self, seed: int, *, failing: float):
        self.luck = random.Random(seed)
        self.failing = failing
        self.injected: dict[str, str] = {}
        self.tenants: dict[str, str] = {}
        self.rewards: dict[str, float] = {}
        self.calls: Counter[str] = Counter()
        self._lives: dict[str, asyncio.Future[None]] = {}

    async def play(self, request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        life = await self._life(environment.name)
        rolled = asyncio.ensure_future(self._rolled(request, environment))
        try:
            await asyncio.wait({rolled, life}, return_when=asyncio.FIRST_COMPLETED)
            if not life.done():
                return rolled.result()
        except RunnerSilent:
            life.set_result(None)
        finally:
            if not rolled.cancel() and not rolled.cancelled():
                rolled.exception()
        # Everything that the sandbox was at is lost with it.
        self.injected.setdefault(request.rollout_id, "killed")
        self.rewards.pop(request.rollout_id, None)
        self.tenants.pop(request.rollout_id, None)
        raise RunnerSilent("the sandbox has ended")

    async def score_group(self, request: GroupScoreRequest) -> GroupScores:
        """A judge of whole groups, which every other time is lost and takes its group with it."""
        if self.luck.random() < 0.5:
            for member in request.members:
                self.injected[member.rollout_id] = "group judge"
                del self.rewards[member.rollout_id]
            raise RunnerSilent("the judge has ended")
        return GroupScores(scores={"pairwise": [0.25] * len(request.members)})

    async def _life(self, name: str) -> asyncio.Future[None]:
        if name in self._lives and self._lives[name].done():
            await asyncio.sleep(2.0)
        if name not in self._lives or self._lives[name].done():
            self._lives[name] = asyncio.get_running_loop().create_future()
        return self._lives[name]

    async def _rolled(self, request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        fate = self._fate(environment.name)
        if environment.name != "brittle":  # where no runner breaks, its protocol costs time alone
            return await self._end(request, environment, fate)

        async def answer(path: str, body: bytes) -> bytes:
            return reply(await self._line(RolloutRequest.model_validate_json(body), environment, fate))

        return await RunnerClient(MemoryPeer(answer).link).roll(request)

    def _fate(self, environment: str) -> str:
        if self.luck.random() >= self.failing:
            return "good"
        if environment == "brittle":
            return self.luck.choice(RUNNER) if self.luck.random() < 0.1 else "good"
        return self.luck.choice(ENGINE + JUDGE) if self.luck.random() < 0.9 else self.luck.choice(TENANT)

    async def _end(self, request: RolloutRequest, environment: ScriptedEnvironment, fate: str) -> RolloutEnd:
        await asyncio.sleep(self.luck.uniform(0.1, 3.0))
        if fate in TENANT:
            self.tenants[request.rollout_id] = fate
        elif fate != "good":
            self.injected[request.rollout_id] = fate
        if fate not in {"no call", "no trace", *RUNNER}:
            await self._call_model(request, environment, fate)
        return self._ended(request, fate)

    async def _line(self, request: RolloutRequest, environment: ScriptedEnvironment, fate: str) -> bytes:
        """What the runner says of one rollout at its end."""
        end = await self._end(request, environment, fate)
        return await self._last_words(request, fate) if fate in RUNNER else end.model_dump_json().encode() + b"\n"

    async def _call_model(self, request: RolloutRequest, environment: ScriptedEnvironment, fate: str) -> None:
        """The environment takes no notice of a call that fails: its reward is then one of nothing."""
        headers = {"X-Session-ID": request.rollout_id, "Content-Type": "application/json"}
        asked = {"model": request.policy, "token_ids": [257, FATES.index(fate)], "sampling_params": {"max_tokens": 8}}
        call = asyncio.ensure_future(call_app(environment.model_app, GENERATE, asked, headers))
        await asyncio.wait({call}, timeout=TIMEOUT_S)
        if not call.done():  # the runner says that its time is up before the call is hung up
            asyncio.get_running_loop().call_later(1.0, call.cancel)
            return
        status, _ = call.result()
        self.calls[request.rollout_id] += status == 200
        if fate in JUDGE:
            asked = {"model": request.policy, "messages": [{"role": "user", "content": fate}]}
            await call_app(environment.model_app, CHAT, asked, headers)

    def _ended(self, request: RolloutRequest, fate: str) -> RolloutEnd:
        reward = float(self.luck.random() < 0.5)
        end = good(request.rollout_id, reward)
        trace = end.traces[0]
        if fate == "hang":
            return end.model_copy(update={"state": "deadline", "fault": "infrastructure"})
        if fate not in TENANT:
            if fate == "good":
                self.rewards[request.rollout_id] = reward
            return end
        unscored = trace.model_copy(update={"reward": None, "rewards": {"right": None}})
        incomplete = unscored.model_copy(update={"state": "incomplete"})
        error = TenantError(type="ValueError", message="as told")
        return {
            "raises": RolloutEnd(state="failed", traces=[incomplete], errors=[error], fault="tenant"),
            "scoring timed out": RolloutEnd(state="incomplete", traces=[incomplete], fault="tenant"),
            "ok without a reward": RolloutEnd(state="ok", traces=[unscored]),
            "part without a reward": RolloutEnd(state="ok", traces=[incomplete]),
            "no trace": RolloutEnd(state="ok"),
            "deadline": RolloutEnd(state="deadline", traces=[incomplete], fault="tenant"),
            "no call": end,
        }[fate]

    async def _last_words(self, request: RolloutRequest, fate: str) -> bytes:
        if fate == "runner silent":
            await asyncio.Event().wait()
        line = good(request.rollout_id, 1.0).model_dump_json().encode()
        rewards = {"nan reward": b"NaN", "infinite reward": b"1e999"}
        if fate in rewards:
            return line.replace(b'"reward":1.0', b'"reward":' + rewards[fate]) + b"\n"
        if fate == "no end":
            return b'{"event": "alive", "turns": []}\n'
        raise Cut(b"" if fate == "killed" else reply(line)[:-20]) if fate != "runner garbage" else Cut(reply(b"<html>\n"))


def make_run(folder: Path, sandboxes: Sandboxes, **changes) -> ScriptedRun:
    environments = [
        {"id": "acme/plain", "name": "plain", "ratio": 8.0},
        {"id": "acme/judged", "name": "judged", "ratio": 1.0},
        {"id": "acme/brittle", "name": "brittle", "ratio": 1.0},
    ]
    fields = {"batch_size": 32, "rollouts_per_example": 8, "max_inflight_rollouts": 256, "failure_pause_fraction": 1.0}
    config = RunConfig.model_validate({"model": {"name": "tiny"}, "environments": environments} | fields | changes)
    run = ScriptedRun(config, folder, sandboxes.play)
    run.judges["judged"] = sandboxes.score_group
    run.gate_link = Engine(run.engine.loaded).peer.link
    return run


def attempted(run: ScriptedRun, lives: Coroutine[Any, Any, Finish] | None = None) -> Finish:
    def gate(link, engines, on_trouble) -> EngineGate:
        return EngineGate(link, engines, lambda *said: None, patience_s=1.0)

    with mock.patch.object(workplace, "EngineGate", gate):
        return run_virtually(asyncio.wait_for(lives or run.attempt(), 1e6))


def _known(fates: dict[str, str], rows: dict) -> list[tuple[str, str]]:
    """What was under way when a lease was lost is in no account."""
    return [(key, fate) for key, fate in fates.items() if key in rows]


def check(run: ScriptedRun, sandboxes: Sandboxes) -> tuple[list[float], int]:
    """Returns the rewards that were trained and how many failures were injected."""
    rows = {row.rollout_id: row for row in run.rows()}
    trained = {sample.rollout_id for samples in run.samples().values() for sample in samples}
    for rollout_id, fate in _known(sandboxes.injected, rows):
        row = rows[rollout_id]
        assert row.state in {"infrastructure", "cancelled", "stale"}, f"{fate} ended as {row.state}: {row.error}"
        assert (row.reward, row.trained, row.billed, row.advantage) == (None, False, False, None), fate
    for rollout_id, fate in _known(sandboxes.tenants, rows):
        row = rows[rollout_id]
        assert (row.reward, row.trained, row.advantage) == (None, False, None), fate
    assert not trained & {*sandboxes.injected, *sandboxes.tenants}
    assert trained == {row.rollout_id for row in rows.values() if row.trained} <= sandboxes.rewards.keys()
    given = {key: reward + 0.25 * (rows[key].environment == "judged") for key, reward in sandboxes.rewards.items() if key in rows}
    assert {key: rows[key].reward for key in trained} == {key: given[key] for key in trained}
    for step, samples in run.samples().items():
        assert run.control.steps()[step]["reward"] == pytest.approx(fmean(given[sample.rollout_id] for sample in samples))
    spent = sum(
        SAID * sandboxes.calls[row.rollout_id] for row in rows.values() if row.trained or row.rollout_id in sandboxes.tenants
    )
    billed = sum(count for (meter, _), count in run.control.usage.items() if meter == Meter.ROLLOUT_OUTPUT_TOKENS)
    assert billed == spent
    return [given[key] for key in trained], len(sandboxes.injected)


def inject(folder: Path, *, steps: int, failures_min: int, **changes) -> str:
    sandboxes = Sandboxes(seed=4, failing=0.85)
    run = make_run(folder, sandboxes, max_steps=steps, **changes)
    finish = attempted(run)
    assert finish.outcome == "completed", finish
    rewards, injected = check(run, sandboxes)
    assert injected >= failures_min and sandboxes.injected.keys() <= {row.rollout_id for row in run.rows()}
    kinds = len(set(sandboxes.injected.values()))
    return (
        f"{injected:,} infrastructure failures of {kinds} kinds: 0 became a reward, 0 were trained, 0 were billed; "
        f"{len(rewards):,} good rollouts were trained with a mean reward of {fmean(rewards):.3f}, as given"
    )


def test_no_injected_failure_becomes_a_reward(tmp_path):
    print(inject(tmp_path, steps=1, failures_min=100, max_inflight_rollouts=96))


def test_a_lost_lease_makes_no_reward_of_what_was_under_way(tmp_path):
    sandboxes = Sandboxes(seed=5, failing=0.5)
    run = make_run(tmp_path, sandboxes, max_steps=3, max_inflight_rollouts=64)

    async def lives() -> Finish:
        lost = asyncio.ensure_future(run.attempt())
        await asyncio.sleep(6.0)
        run.control.stale = True
        await asyncio.wait({lost})
        assert _leaves(lost.exception(), StaleLease)
        assert {*sandboxes.rewards, *sandboxes.injected} - {row.rollout_id for row in run.rows()}, "something was under way"
        run.control.stale = False
        return await run.attempt()

    assert attempted(run, lives()).outcome == "completed"
    check(run, sandboxes)


def _leaves(error: BaseException | None, kind: type[BaseException]) -> bool:
    return isinstance(error, kind) or (isinstance(error, BaseExceptionGroup) and error.subgroup(kind) is not None)


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_none_of_ten_thousand_injected_failures_becomes_a_reward(tmp_path):
    print(inject(tmp_path, steps=68, failures_min=10_000))  # about 200 a step, as the timing of real sockets has it

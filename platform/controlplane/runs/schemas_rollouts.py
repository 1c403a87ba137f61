"""How groups, rollouts and tokens look on the wire. snake_case, bare objects; knows spelling only.

A record of before a field was kept shows that field as empty.
"""

from typing import Annotated, Self

from pydantic import Field

from controlplane.core.pagination import OFFSET_MAX
from controlplane.core.schemas import Answer, Query
from controlplane.runs.models import Rollout
from controlplane.runs.rollout_reads import Group, Record, StepRollouts, Stream
from trainer.contracts.names import parse_engine_name

TOKENS_MAX = 4_096
MEMBERS_MAX = 256
"""Of a group that are shown: no group is larger."""


class GroupsQuery(Query):
    """`tag` is `train`, `eval/NAME` for an evaluation, or `rest-N` for what an attempt left over."""

    step: Annotated[int, Field(ge=0)]
    tag: Annotated[str, Field(max_length=64)] = "train"
    offset: Annotated[int, Field(ge=0, le=OFFSET_MAX)] = 0
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class RolloutRow(Answer):
    id: str
    state: str
    reward: float | None
    advantage: float | None
    trained: bool
    staleness: int
    policy_version: int
    turns: int
    input_tokens: int
    output_tokens: int
    duration_s: float
    stop: str | None
    error: str | None
    preview: str

    @classmethod
    def of(cls, row: Rollout) -> Self:
        known = {name: row.summary.get(name) for name in cls.model_fields if name in row.summary}
        return cls(**known | {"id": row.pk, "policy_version": row.summary["policy_version_min"]})


class GroupAnswer(Answer):
    group_id: str
    environment: str
    task: int
    task_key: str
    task_preview: str
    policy_version: int
    staleness: int
    trained_count: int
    reward_mean: float | None
    reward_std: float | None
    reward_min: float | None
    reward_max: float | None
    rollouts: list[RolloutRow]

    @classmethod
    def of(cls, group: Group) -> Self:
        first, rewards = group.first, group.rewards
        return cls(
            group_id=group.group_id,
            environment=first["environment"],
            task=first["task"],
            task_key=first.get("task_key", ""),
            task_preview=first.get("task_preview", ""),
            policy_version=first["policy_version_min"],
            staleness=max(row.summary.get("staleness", 0) for row in group.rollouts),
            trained_count=sum(bool(row.summary.get("trained")) for row in group.rollouts),
            reward_mean=group.reward_mean,
            reward_std=group.reward_std,
            reward_min=min(rewards, default=None),
            reward_max=max(rewards, default=None),
            rollouts=[RolloutRow.of(row) for row in group.rollouts[:MEMBERS_MAX]],
        )


class TagAnswer(Answer):
    tag: str
    rollouts_count: int


class ErrorCount(Answer):
    error: str
    count: int


class GroupsAnswer(Answer):
    step: int
    tag: str
    tags: list[TagAnswer]
    groups: list[GroupAnswer]
    groups_count: int
    rollouts_count: int
    states: dict[str, int]
    errors: list[ErrorCount]

    @classmethod
    def of(cls, query: GroupsQuery, found: StepRollouts) -> Self:
        return cls(
            step=query.step,
            tag=query.tag,
            tags=[TagAnswer(tag=tag, rollouts_count=count) for tag, count in found.tags.items()],
            groups=[GroupAnswer.of(group) for group in found.groups],
            groups_count=found.groups_count,
            rollouts_count=found.rollouts_count,
            states=found.states,
            errors=[ErrorCount(error=error, count=count) for error, count in found.errors],
        )


class ErrorAnswer(Answer):
    """`module` and `line` point into the environment's own code, where the error came from it."""

    type: str
    message: str
    module: str | None = None
    line: int | None = None
    function: str | None = None


class ToolCallAnswer(Answer):
    name: str
    arguments: str


class MessageAnswer(Answer):
    role: str
    name: str | None = None
    content: str
    tool_calls: list[ToolCallAnswer]

    @classmethod
    def of(cls, message: Record) -> Self:
        content, name = message.get("content"), message.get("name")
        calls = [call for call in message.get("tool_calls") or [] if isinstance(call, dict)]
        return cls(
            role=str(message.get("role", "")),
            name=None if name is None else str(name),
            content=content if isinstance(content, str) else "",
            tool_calls=[ToolCallAnswer(name=str(one.get("name", "")), arguments=str(one.get("arguments", ""))) for one in calls],
        )


class CallAnswer(Answer):
    """One model call. `offset_s` counts from the rollout's dispatch; `branch` is None where no token ids were recorded."""

    route: str
    policy_version: int | None
    engine_name: str
    adapter_digest: str
    branch: int | None
    input_tokens: int
    output_tokens: int
    finish_reason: str
    temperature: float
    offset_s: float
    duration_s: float

    @classmethod
    def of(cls, call: Record) -> Self:
        return cls(
            route=call["route"],
            policy_version=version_of(call["engine_name"]),
            engine_name=call["engine_name"],
            adapter_digest=call["adapter_digest"],
            branch=call.get("branch"),
            finish_reason=call["finish_reason"],
            temperature=call["temperature"],
            offset_s=call.get("offset_s", 0.0),
            duration_s=call.get("duration_s", 0.0),
            **call["usage"],
        )


class BranchSize(Answer):
    """A flat token stream of a trace; `trained` says whether the step's batch had it."""

    tokens_count: int
    sampled_count: int
    trained: bool


class TraceAnswer(Answer):
    """One seat's part in a rollout."""

    agent: str
    trainable: bool
    state: str
    stop: str | None
    reward: float | None
    rewards: dict[str, float | None]
    metrics: dict[str, float]
    turns: int
    truncated: bool
    scoring_s: float
    errors: list[ErrorAnswer]
    messages: list[MessageAnswer]
    calls: list[CallAnswer]
    branches: list[BranchSize]

    @classmethod
    def of(cls, trace: Record) -> Self:
        return cls(
            agent=trace.get("agent", "agent"),
            trainable=trace.get("trainable", True),
            state=trace.get("state", ""),
            stop=trace.get("stop"),
            reward=trace.get("reward"),
            rewards=trace.get("rewards") or {},
            metrics=trace.get("metrics") or {},
            turns=trace.get("turns", 0),
            truncated=trace.get("truncated", False),
            scoring_s=trace.get("scoring_s", 0.0),
            errors=[ErrorAnswer(**error) for error in trace.get("errors") or []],
            messages=[MessageAnswer.of(message) for message in trace.get("messages") or []],
            calls=[CallAnswer.of(call) for call in trace.get("calls") or []],
            branches=[BranchSize(**branch) for branch in trace.get("branches") or []],
        )


class RolloutAnswer(Answer):
    """`time_s` splits the rollout's own time: model calls, scoring, and all else that its environment did."""

    rollout: RolloutRow
    step: int
    tag: str
    group_id: str
    environment: str
    task: int
    task_key: str
    task_preview: str
    billed: bool
    rewards: dict[str, float | None]
    metrics: dict[str, float]
    time_s: dict[str, float]
    traces: list[TraceAnswer]

    @classmethod
    def of(cls, row: Rollout, record: Record) -> Self:
        traces = [TraceAnswer.of(trace) for trace in record.get("traces") or []]
        return cls(
            rollout=RolloutRow.of(row),
            step=row.rollout_step.step,
            tag=row.rollout_step.tag,
            group_id=record["group_id"],
            environment=record["environment"],
            task=record["task"],
            task_key=record.get("task_key", ""),
            task_preview=record.get("task_preview", ""),
            billed=record["billed"],
            rewards=record.get("rewards") or {},
            metrics=record.get("metrics") or {},
            time_s=_time_split(record["duration_s"], traces),
            traces=traces,
        )


class TokensQuery(Query):
    """A window of one token stream: trace and branch are counted from 0."""

    trace: Annotated[int, Field(ge=0, le=1_000)] = 0
    branch: Annotated[int, Field(ge=0, le=100_000)] = 0
    offset: Annotated[int, Field(ge=0, le=OFFSET_MAX)] = 0
    limit: Annotated[int, Field(ge=1, le=TOKENS_MAX)] = 2_048


class TokensAnswer(Answer):
    """Lists of equal length. `trained[i]` is the mask that the trainer saw; `calls[i]` counts the trace's model calls from 0 and
    says whose prompt or answer a token is. `texts` is None where the model's tokenizer file was not at hand."""

    total: int
    offset: int
    token_ids: list[int]
    texts: list[str] | None
    sampled: list[bool]
    trained: list[bool]
    logprobs: list[float | None]
    calls: list[int]

    @classmethod
    def of(cls, query: TokensQuery, record: Record, stream: Stream, *, is_trained: bool) -> Self:
        window = slice(query.offset, query.offset + query.limit)
        token_ids, sampled, known = stream.token_ids[window], stream.sampled[window], record.get("texts") or {}
        return cls(
            total=len(stream.token_ids),
            offset=query.offset,
            token_ids=token_ids,
            texts=[known.get(str(token), "") for token in token_ids] if known else None,
            sampled=sampled,
            trained=[is_trained and one for one in sampled],
            logprobs=stream.logprobs[window],
            calls=stream.calls[window],
        )


def version_of(engine_name: str) -> int | None:
    """The policy version that an engine's name stands for; None for a base model."""
    parsed = parse_engine_name(engine_name)
    return parsed.version if parsed else None


def _time_split(duration_s: float, traces: list[TraceAnswer]) -> dict[str, float]:
    model_s = min(duration_s, sum(call.duration_s for trace in traces for call in trace.calls))
    score_s = min(duration_s - model_s, sum(trace.scoring_s for trace in traces))
    return {"model": model_s, "score": score_s, "environment": duration_s - model_s - score_s}

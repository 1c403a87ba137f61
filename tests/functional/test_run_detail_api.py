"""What the run page reads before it follows the stream: curves, timeline, groups, one rollout and its tokens, configuration."""

import base64
import hashlib
import json
import time
import tomllib
from dataclasses import replace

import pytest
import zstandard

from controlplane.core.tenancy import acting_as_system
from controlplane.pools.access import live_lease
from controlplane.pools.bodies import store_body
from controlplane.pools.models import Pool
from controlplane.pools.services import proven
from controlplane.runs import reports
from controlplane.runs.access import lock_run
from controlplane.runs.lifecycle import fence, lose_attempt
from controlplane.runs.models import RunMetric
from controlplane.runs.request import parse_request
from tests.factories.reports import AT, log, step, summary
from tests.factories.rollouts import make_call, make_group, make_outcome
from tests.factories.runs import fresh, lease_run, make_funded_member, make_pool, make_run
from tests.fixtures.reported_run import client, get, report, run
from trainer.contracts.base import new_id
from trainer.contracts.events import EventKind
from trainer.contracts.internal import EventBatch, EventIn, RolloutBatch
from trainer.contracts.toml_config import translate
from trainer.orchestrator.rollouts.records import rollout_batch
from trainer.orchestrator.rollouts.rollout import Accounted
from trainer.orchestrator.steps.metrics import cut_metrics

__all__ = ["client", "report", "run"]
pytestmark = pytest.mark.django_db
RUN_ID = new_id()
CALL = {
    "route": "generate",
    "engine_name": f"{RUN_ID}.v3",
    "adapter_digest": "d" * 64,
    "temperature": 1.0,
    "finish_reason": "stop",
    "usage": {"input_tokens": 2, "output_tokens": 2},
    "offset_s": 0.1,
    "duration_s": 0.2,
}
TWO_TURNS = [
    CALL | {"branch": 0, "start": 0, "prompt_ids": [1, 2], "token_ids": [3, 4], "logprobs": [-0.5, -0.25]},
    CALL | {"branch": 0, "start": 4, "prompt_ids": [1, 2, 3, 4, 9], "token_ids": [5], "logprobs": [-2.0], "offset_s": 0.4},
]
TRACE = {
    "agent": "agent",
    "trainable": True,
    "state": "ok",
    "reward": 1.0,
    "scoring_s": 0.1,
    "messages": [
        {"role": "user", "content": "3+4?"},
        {"role": "assistant", "content": "", "tool_calls": [{"name": "add", "arguments": '{"a": 3}'}]},
        {"role": "tool", "name": "add", "content": "7"},
    ],
    "calls": TWO_TURNS,
    "branches": [{"tokens_count": 6, "sampled_count": 3, "trained": True}],
}


def rollouts(number: int, *summaries, traces=(TRACE,), tag: str = "train") -> RolloutBatch:
    texts = {str(token): f"t{token}" for token in (1, 2, 3, 4, 5, 9)}
    records = [{**one.model_dump(), "traces": list(traces), "texts": texts} for one in summaries]
    body = zstandard.compress("\n".join(map(json.dumps, records)).encode())
    encoded, digest = base64.b64encode(body).decode(), hashlib.sha256(body).hexdigest()
    return RolloutBatch(step=number, tag=tag, summaries=list(summaries), body_zstd_b64=encoded, body_sha256=digest)


def member_of_group(index: int, group: str, reward: float | None, **changes):
    changes = {"duration_s": 1.0} | changes
    return summary(index, reward or 0.0, 0.5).model_copy(update={"group_id": group, "reward": reward, **changes})


def event(sequence: int, kind: EventKind, payload: dict, at_step: int | None = None) -> EventIn:
    return EventIn(sequence=sequence, kind=kind, step=at_step, at=AT, payload=payload)


def take_again(run, *steps: tuple[int, float]) -> None:
    """The run's attempt is lost; a new one reports these steps."""
    with acting_as_system():
        locked = lock_run(run.id)
        fence(locked, "lost")
        lose_attempt(locked, "its process was killed")
        token = lease_run(Pool.objects.get()).token
        with proven(token) as held:
            events = [step(index, number, reward) for index, (number, reward) in enumerate(steps, start=1)]
            reports.record_events(held.row, held.lease, EventBatch(events=events))


def test_curves_are_columns_with_one_value_per_step(client, run, report):
    report(events=[step(number, number, number / 10) for number in (1, 2, 3)])
    curves = get(client, run, "curves").json()
    assert (curves["steps"], curves["series"]["reward"]) == ([1, 2, 3], [0.1, 0.2, 0.3])
    assert (curves["steps_count"], curves["bucket_steps"], curves["branches"]) == (3, 1, [])
    assert curves["cursor"] == fresh(run).events_count
    assert get(client, run, "curves", min_step=3).json()["steps"] == [3]


def test_each_environment_has_curves_of_what_it_pays_and_measures(client, run, report):
    def learnt(environment: str, right: float) -> Accounted:
        (rollout,) = make_group(0, 1, environment).rollouts
        rollout.outcome = replace(make_outcome(right), rewards={"right": right}, metrics={"letters": 4 * right})
        return Accounted(rollout, "ok", True, 0, billed=True)

    metrics = cut_metrics([learnt("ann/words", 1.0), learnt("ann/words", 0.5), learnt("sums", 0.0)], broken_prefixes=0)
    report(events=[step(1, 1, 0.5).model_copy(update={"payload": step(1, 1, 0.5).payload | {"metrics": metrics}})])
    series = get(client, run, "curves").json()["series"]
    asked = {name: values for name, values in series.items() if name.startswith(("reward/", "reward_part/", "metric/"))}
    assert asked == {
        "reward/ann/words": [0.75],
        "reward/sums": [0.0],
        "reward_part/ann/words/right": [0.75],
        "reward_part/sums/right": [0.0],
        "metric/ann/words/letters": [3.0],
        "metric/sums/letters": [0.0],
    }
    (point,) = get(client, run, "metrics").json()["metrics"]
    assert point["reward_part/ann/words/right"] == 0.75


def test_what_a_resumed_attempt_took_again_is_folded_and_kept(client, run, report):
    report(events=[step(number, number, 0.1) for number in (1, 2, 3, 4)])
    take_again(run, (3, 0.5), (4, 0.6), (5, 0.7))
    curves = get(client, run, "curves").json()
    assert (curves["steps"], curves["series"]["reward"]) == ([1, 2, 3, 4, 5], [0.1, 0.1, 0.5, 0.6, 0.7])
    (branch,) = curves["branches"]
    assert (branch["attempt"], branch["superseded_by"], branch["steps"], branch["rewards"]) == (1, 2, [3, 4], [0.1, 0.1])
    assert [(span["attempt"], span["first_step"], span["last_step"]) for span in curves["attempts"]] == [(1, 1, 2), (2, 3, 5)]


def test_ten_thousand_steps_are_thinned_at_once_and_keep_their_extremes(client, run):
    with acting_as_system():
        values = {f"metric_{index}": 0.5 for index in range(40)}
        rows = [
            RunMetric(
                run=run,
                team_id=run.team_id,
                step=number,
                attempt=1,
                segment=1,
                at=AT,
                values=values
                | {"reward": float(number), "staleness_max": 9 if number == 7_777 else 1, "output_tokens_min": number},
            )
            for number in range(1, 10_001)
        ]
        RunMetric.objects.bulk_create(rows, batch_size=1000)
    started_s = time.process_time()
    curves = get(client, run, "curves", points=500).json()
    assert time.process_time() - started_s < 3.0
    assert (len(curves["steps"]), curves["bucket_steps"], curves["steps"][-1]) == (500, 20, 10_000)
    assert max(curves["series"]["staleness_max"]) == 9
    assert (curves["series"]["reward"][0], curves["series"]["output_tokens_min"][0]) == (10.5, 1.0)
    window = get(client, run, "curves", points=500, min_step=7_700, max_step=7_800).json()
    assert (window["bucket_steps"], len(window["steps"])) == (1, 101)


def test_the_timeline_has_everything_but_log_lines_and_steps(client, run, report):
    report(
        events=[
            log(1, "noise"),
            step(2, 1, 0.5),
            event(3, EventKind.EVAL, {"environment": "ann/rules", "reward_mean": 0.4, "rollouts": 8}, 1),
            event(4, EventKind.INCIDENT, {"code": "runner_lost", "message": "gone", "component": "environment"}),
        ]
    )
    timeline = get(client, run, "timeline").json()
    kinds = [one["kind"] for one in timeline["events"]]
    assert {"log", "step"} & set(kinds) == set() and kinds[-2:] == ["eval", "incident"]
    assert [one["seq"] for one in timeline["events"]] == sorted(one["seq"] for one in timeline["events"])
    short = get(client, run, "timeline", limit=1).json()
    assert (len(short["events"]), short["left_out"]) == (1, len(kinds) - 1)


def test_groups_of_a_step_show_spread_states_and_the_commonest_errors(client, run, report):
    broken = {"state": "failed", "error": "KeyError: 'x' at rules.rewards:7", "trained": False, "advantage": None}
    members = [
        member_of_group(0, "g1", 1.0),
        member_of_group(1, "g2", None, **broken),
        member_of_group(2, "g1", 0.0),
        member_of_group(3, "g2", None, **broken),
    ]
    report(rollouts=rollouts(1, *members))
    found = get(client, run, "groups", step=1).json()
    first, second = found["groups"]
    assert (first["group_id"], first["reward_mean"], first["reward_std"], first["trained_count"]) == ("g1", 0.5, 0.5, 2)
    assert (second["reward_mean"], [one["state"] for one in second["rollouts"]]) == (None, ["failed", "failed"])
    assert (found["states"], found["errors"]) == ({"ok": 2, "failed": 2}, [{"error": broken["error"], "count": 2}])
    assert found["tags"] == [{"tag": "train", "rollouts_count": 4}]
    page = get(client, run, "groups", step=1, offset=1, limit=1).json()
    assert ([group["group_id"] for group in page["groups"]], page["groups_count"]) == (["g2"], 2)
    assert get(client, run, "groups", step=9).json()["groups"] == []


@pytest.fixture
def rollout(client, run, report):
    report(rollouts=rollouts(1, member_of_group(0, "g", 0.0), member_of_group(1, "g", 1.0)))
    (group,) = get(client, run, "groups", step=1).json()["groups"]
    return group["rollouts"][1]["id"]


def test_a_rollout_shows_turns_tools_versions_and_where_its_time_went(client, run, rollout):
    shown = get(client, run, f"rollouts/{rollout}").json()
    (trace,) = shown["traces"]
    assert [(one["role"], one["name"], one["content"]) for one in trace["messages"]] == [
        ("user", None, "3+4?"),
        ("assistant", None, ""),
        ("tool", "add", "7"),
    ]
    assert trace["messages"][1]["tool_calls"] == [{"name": "add", "arguments": '{"a": 3}'}]
    assert [call["policy_version"] for call in trace["calls"]] == [3, 3]
    assert shown["time_s"] == pytest.approx({"model": 0.4, "score": 0.1, "environment": 0.5})
    assert (shown["rollout"]["reward"], shown["step"], shown["tag"]) == (1.0, 1, "train")


def test_tokens_have_text_mask_log_probability_and_the_call_that_they_belong_to(client, run, rollout):
    tokens = get(client, run, f"rollouts/{rollout}/tokens").json()
    assert tokens["token_ids"] == [1, 2, 3, 4, 9, 5]
    assert tokens["texts"] == ["t1", "t2", "t3", "t4", "t9", "t5"]
    assert tokens["trained"] == [False, False, True, True, False, True]
    assert tokens["logprobs"] == [None, None, -0.5, -0.25, None, -2.0]
    assert tokens["calls"] == [0, 0, 0, 0, 1, 1]
    window = get(client, run, f"rollouts/{rollout}/tokens", offset=2, limit=2).json()
    assert (window["total"], window["offset"], window["token_ids"]) == (6, 2, [3, 4])


def test_forks_and_a_sub_agents_conversation_are_streams_of_one_rollout(client, run, report):
    plan, scout = make_call((1,), (2, 3)), make_call((7,), (8,))
    forks = [make_call((1, 2, 3, end), (5,)) for end in (4, 6)]
    (rollout,) = make_group(0, 1).rollouts
    rollout.outcome = make_outcome(1.0, calls=[plan, scout, *forks])
    report(rollouts=rollout_batch([Accounted(rollout, "ok", True, 0, billed=True)], step=1))
    shown = get(client, run, "groups", step=1).json()["groups"][0]["rollouts"][0]["id"]
    (trace,) = get(client, run, f"rollouts/{shown}").json()["traces"]
    assert [(one["tokens_count"], one["sampled_count"], one["trained"]) for one in trace["branches"]] == [
        (5, 3, True),
        (2, 1, True),
        (5, 1, True),
    ]
    assert [call["branch"] for call in trace["calls"]] == [0, 1, 0, 2]
    second = get(client, run, f"rollouts/{shown}/tokens", branch=2).json()
    assert (second["token_ids"], second["trained"]) == ([1, 2, 3, 6, 5], [False, False, False, False, True])


def test_a_stream_or_a_rollout_that_is_not_there_is_a_404_that_says_why(client, run, rollout):
    absent = get(client, run, f"rollouts/{rollout}/tokens", branch=1)
    assert absent.status_code == 404 and "token ids" in absent.json()["hint"].lower()
    assert get(client, run, f"rollouts/{new_id()}").status_code == 404


def test_a_rollout_of_another_run_is_not_found_under_this_one(client, run, rollout):
    other = make_run(make_funded_member())
    assert client.get(f"/api/v1/rft/runs/{other.id}/rollouts/{rollout}").status_code == 404


def test_a_runs_own_secrets_are_masked_in_what_a_body_shows(client_of):
    make_pool()
    member = make_funded_member()
    run = make_run(member, secrets=[{"key": "TOKEN", "value": "correct-horse-battery"}])
    said = TRACE | {"messages": [{"role": "assistant", "content": "it is correct-horse-battery"}]}
    batch = rollouts(1, member_of_group(0, "g", 1.0), traces=(said,))
    with acting_as_system():
        token = lease_run(Pool.objects.get()).token
        with proven(token) as held:
            reports.record_rollouts(held.row, held.lease, batch, store_body(held.lease, batch))
    client = client_of(member)
    (group,) = get(client, run, "groups", step=1).json()["groups"]
    shown = get(client, run, f"rollouts/{group['rollouts'][0]['id']}")
    assert "correct-horse" not in shown.content.decode() and "it is" in shown.content.decode()


def test_the_configuration_as_toml_starts_the_same_run(client, run):
    shown = get(client, run, "config").json()
    body = translate(tomllib.loads(shown["toml"])).body
    assert parse_request(body).config.model_dump(mode="json") == fresh(run).config
    assert {"batch_size", "max_steps", "model.name", "environments.0.id"} <= set(shown["changed"])
    assert "learning_rate" not in shown["changed"]


def test_a_log_line_says_who_speaks_and_what_kind_it_is(client, run, report):
    report(events=[log(1, "hello")])
    own = get(client, run, "logs", component="control-plane").json()["logs"].splitlines()
    assert {json.loads(line)["kind"] for line in own} == {"state"}
    held = get(client, run, "logs", component="orchestrator").json()["logs"].splitlines()
    assert [json.loads(line)["message"] for line in held] == ["hello"]


def test_a_run_at_work_says_what_it_is_doing(client, run, report):
    with acting_as_system():
        lease = live_lease("run", run.id)
        lease.phase, lease.inflight = "step 3: collecting rollouts", 12
        lease.save(update_fields=["phase", "inflight"])
    shown = client.get(f"/api/v1/rft/runs/{run.id}").json()["run"]
    assert (shown["phase"], shown["inflightRollouts"]) == ("step 3: collecting rollouts", 12)

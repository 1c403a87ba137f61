"""A trainer that is not ours, on the published SDK: one run tells numbers and rollouts and finishes, a second one fails."""

import sys
from types import SimpleNamespace

import prime_runs


class Dumped(SimpleNamespace):
    """As the library's own models are written out."""

    def model_dump(self, **_: object) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "idx"}


def episode(number: int) -> SimpleNamespace:
    """One rollout of a training step, with the attributes that the SDK projects."""
    said = [Dumped(role="user", content="3+4?"), Dumped(role="assistant", content="7")]
    branch = SimpleNamespace(messages=said, num_input_tokens=11, num_output_tokens=2)
    trace = SimpleNamespace(
        id=f"trace-{number}",
        task=SimpleNamespace(data=Dumped(idx=number, prompt="3+4?", answer="7")),
        agent=SimpleNamespace(name="agent", trainable=True),
        branches=[branch],
        tools=None,
        reward=1.0,
        rewards={},
        metrics={"exact": 1.0},
        timing=Dumped(total=0.5),
        is_completed=True,
        is_truncated=False,
        last_error=None,
        stop_condition=None,
        usage=None,
        info={"advantage": 0.0},
    )
    return SimpleNamespace(
        id=f"episode-{number}",
        traces=[trace],
        env=SimpleNamespace(id="elsewhere"),
        run=SimpleNamespace(type="train", work=SimpleNamespace(type="train", step=10), id=None),
        ok=True,
        to_record=lambda: {"id": f"episode-{number}"},
    )


def start(name: str) -> prime_runs.Run:
    training = prime_runs.TrainingSpec(max_steps=10, batch_size=8, rollouts_per_example=8, seq_len=2048)
    options = {"on_error": "raise", "traces_opt_out": True, "config": {"lr": 1e-6}, "environments": ["elsewhere"]}
    return prime_runs.init(kind="train", name=name, team_id=sys.argv[1], model="org/some-8b", training=training, **options)


run = start("elsewhere")
for step in range(1, 11):
    run.log_metrics({"reward/all/mean": step / 10, "loss": 1 / step}, step=step)
run.log_episodes([episode(number) for number in range(4)])
run.flush()
assert not run.failed_records and not run.dropped_records, (run.failed_records, run.errors)
run.finish()
start("fails").fail("out of memory")
print("finished", run.id)

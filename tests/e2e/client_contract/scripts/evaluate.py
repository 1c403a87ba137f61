"""A script that pushes an evaluation by the published SDK, as its documentation shows it."""

import sys

from prime_evals import APIClient, EvalsClient

environment_id, slug = sys.argv[1:]
evals = EvalsClient(APIClient())
made = evals.create_evaluation(
    name="by-the-sdk",
    environments=[{"id": environment_id}],
    model_name="tiny",
    dataset="sums",
    metadata={"num_examples": 2, "rollouts_per_example": 1},
)
evaluation_id = made["evaluation_id"]
samples = [
    {"example_id": number, "prompt": [], "completion": [{"role": "assistant", "content": "7"}], "answer": "7", "reward": 0.5}
    for number in range(2)
]
evals.push_samples(evaluation_id, samples)
evals.update_evaluation(evaluation_id, name="renamed")
evals.finalize_evaluation(evaluation_id, metrics={"avg_reward": 0.5})
found = evals.get_evaluation(evaluation_id)
print(found["name"], found["status"], "samples:", evals.get_samples(evaluation_id)["total"])
print(len(evals.list_evaluations()["evaluations"]))
evals.create_evaluation(name="by-slug", environments=[{"slug": slug}], model_name="tiny")
evals.create_evaluation(name="by-name", environments=[{"name": slug.partition("/")[2]}], model_name="tiny")

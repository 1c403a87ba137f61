"""Whether the pool that a run would be placed on can train and serve what its configuration asks for.

Knows the configuration and the pool's limits. Refuses by field, before anything is made or paid. Writes nothing.
"""

from collections.abc import Iterator

from controlplane.adapters.preflight import servable_problems
from controlplane.core.errors import Invalid
from controlplane.core.problems import FieldProblem
from controlplane.pools.limits import PoolLimits
from trainer.contracts.run_config import RunConfig
from trainer.contracts.teaching import SCORED, generator_of, sampling_of


def check_pool_limits(config: RunConfig, limits: PoolLimits) -> None:
    """Raises Invalid that names every field which the pool cannot serve."""
    problems = [*_adapter(config, limits), *_context(config, limits), *_scoring(config, limits)]
    if problems:
        refused = Invalid(problems[0].loc, problems[0].msg, hint="`prime models` lists each model's limits.")
        refused.problems = problems
        raise refused


def _adapter(config: RunConfig, limits: PoolLimits) -> Iterator[FieldProblem]:
    """The adapter that the run would publish: on every module that the pool takes."""
    published = {"r": config.lora_rank, "lora_alpha": config.lora_alpha, "target_modules": limits.target_modules}
    for problem in servable_problems(limits, published):
        field = ("body", "lora_rank") if problem.startswith("rank ") else ("body", "model", "name")
        yield FieldProblem(field, problem)


def _context(config: RunConfig, limits: PoolLimits) -> Iterator[FieldProblem]:
    room = f"the {limits.context_tokens} tokens of context that {limits.base_model} is served with"
    if config.max_tokens >= limits.context_tokens:
        yield FieldProblem(("body", "max_tokens"), f"{config.max_tokens} leaves no room for a prompt in {room}")
    tables = {"environments": config.environments, "eval": config.eval.environments if config.eval else []}
    for table, refs in tables.items():
        at = ("body", "environments") if table == "environments" else ("body", "eval", "environments")
        for index, ref in enumerate(refs):
            if ref.max_total_tokens is not None and ref.max_total_tokens > limits.context_tokens:
                yield FieldProblem((*at, index, "max_total_tokens"), f"{ref.max_total_tokens} is more than {room}")


def _scoring(config: RunConfig, limits: PoolLimits) -> Iterator[FieldProblem]:
    """An algorithm that compares log-probabilities needs them at the temperature at which the policy sampled."""
    if limits.scores_at is None:
        return
    for ref in config.environments:
        algorithm, sampled_at = config.algorithm_of(ref).id, sampling_of(config, ref).temperature
        if algorithm in SCORED and generator_of(config, ref) == "policy" and sampled_at != limits.scores_at:
            message = f"{algorithm} scores tokens at the temperature that sampled them, {sampled_at}, and the pool's engine"
            way_out = f"({limits.engine}) scores at {limits.scores_at} alone; take temperature = {limits.scores_at}"
            yield FieldProblem(("body", "temperature"), f"{message} {way_out}")
            return

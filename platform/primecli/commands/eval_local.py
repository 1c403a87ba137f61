"""`prime eval run --local`: an evaluation on this machine against any OpenAI-compatible address.

Its folder holds `metadata.json` and `results.jsonl`, as `prime eval push` takes them. The same command again goes on where the
last one ended.
"""

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from primecli.commands.eval_push import push_folder
from primecli.commands.install import fetch_wheel
from primecli.commands.push import HUB
from primecli.environment_names import full_name
from primecli.eval_tables import evaluation_facts
from primecli.foreign_results import METADATA, RESULTS, read_results
from primecli.local_runner import interface_in, module_in, play, runner_python
from primecli.output import CliError, ExitCode
from primecli.packaging import build_wheel, read_project, read_push_record
from primecli.session import Session
from trainer.contracts.eval_statistics import mean_estimate, pass_rates
from trainer.contracts.interfaces import Interface
from trainer.contracts.local_eval import LocalJob
from trainer.contracts.rollouts import RolloutSampling

OUR_KEY_VARIABLE = "PRIME_API_KEY"


@dataclass(frozen=True)
class LocalRequest:
    """`environment`: a folder with a project, or a name of the hub. Without `base_url` our own models are asked."""

    environment: str
    num_examples: int
    rollouts: int
    sampling: RolloutSampling
    args: dict[str, Any]
    base_url: str | None
    key_var: str | None


@dataclass(frozen=True)
class LocalPlaces:
    """`out` None chooses a folder by environment and model. `prices` go along with an upload."""

    out: Path | None
    upload: bool
    is_public: bool
    prices: dict[str, Any]
    max_concurrent: int


def run_locally(cli: Session, models: list[str], asked: LocalRequest, places: LocalPlaces) -> None:
    """Play what is missing, one model after the other; sum up, and push where that is wanted."""
    if len(models) > 1 and places.out is not None:
        raise CliError("--out holds one model's samples", ExitCode.USAGE, hint="leave it out: each model has a folder of its own")
    with TemporaryDirectory() as scratch:
        wheel, name, allows_prereleases = _wheel(cli, asked.environment, Path(scratch))
        module = module_in(wheel)
        interface = interface_in(wheel, module)
        python = runner_python(wheel, interface, allows_prereleases=allows_prereleases)
        folders = {model: places.out or _folder(name, model) for model in models}
        for model, folder in folders.items():
            job = _job(cli, asked, model, folder, places.max_concurrent, module=module, interface=interface)
            _claim(folder, _metadata(asked, name, job))
            _play(cli, python, job, folder)
    found = [_finished(cli, folder, name, places) for folder in folders.values()]
    for one in found if not cli.terminal.is_json else ():
        cli.terminal.facts(one, evaluation_facts(one))
    cli.terminal.data(found[0] if len(found) == 1 else found)


def _folder(name: str, model: str) -> Path:
    return Path("outputs") / "evals" / f"{name}--{model}".replace("/", "-")


def _finished(cli: Session, folder: Path, name: str, places: LocalPlaces) -> dict[str, Any]:
    found = summary_of(folder)
    cli.terminal.note(f"samples are in {folder / RESULTS}")
    if places.upload:
        pushed = push_folder(
            cli, folder, read_results(folder), environment=name, prices=places.prices, is_public=places.is_public
        )
        cli.show_page(f"/evaluations/{pushed['evaluation_id']}")
        found |= {"evaluation_id": pushed["evaluation_id"]}
    return found


def _wheel(cli: Session, environment: str, scratch: Path) -> tuple[Path, str, bool]:
    """(wheel, the environment's name on the hub as far as it is known, whether what it depends on may be a pre-release)."""
    folder = Path(environment)
    if (folder / "pyproject.toml").is_file():
        project = read_project(folder)
        owner = read_push_record(folder).get("owner")
        return build_wheel(project).path, f"{owner}/{project.name}" if owner else project.name, project.allows_prereleases
    name, version = full_name(cli, environment)
    found = cli.client.get(f"{HUB}/{name}/@{version or 'latest'}")["data"]
    return fetch_wheel(cli, found, scratch), name, bool(found.get("allows_prereleases"))


def _job(
    cli: Session, asked: LocalRequest, model: str, folder: Path, max_concurrent: int, *, module: str, interface: Interface
) -> LocalJob:
    """Without an address, our own models are asked with our own key."""
    key_var = asked.key_var or (OUR_KEY_VARIABLE if asked.base_url is None else "")
    if key_var == OUR_KEY_VARIABLE and cli.config.api_key:
        os.environ.setdefault(OUR_KEY_VARIABLE, cli.config.api_key)
    if key_var and not os.environ.get(key_var):
        raise CliError(f"the variable {key_var} is not set in this shell", ExitCode.USAGE)
    return LocalJob(
        environment=module,
        interface=interface,
        args=asked.args,
        model=model,
        base_url=(asked.base_url or cli.config.inference_url).rstrip("/"),
        api_key_var=key_var or "ROOTSTOCK_NO_KEY",
        num_examples=asked.num_examples,
        rollouts_per_example=asked.rollouts,
        sampling=asked.sampling,
        max_concurrent=max_concurrent,
        results=str((folder / RESULTS).absolute()),
    )


def _metadata(asked: LocalRequest, name: str, job: LocalJob) -> dict[str, Any]:
    """What the evaluation is. More examples or rollouts go on in the same folder; anything else is another evaluation."""
    return {
        "env_id": name,
        "model": job.model,
        "base_url": job.base_url,
        "env_args": asked.args,
        "sampling_args": asked.sampling.model_dump(),
        "num_examples": asked.num_examples,
        "rollouts_per_example": asked.rollouts,
    }


def _claim(folder: Path, metadata: dict[str, Any]) -> None:
    """Make the folder, or find this very evaluation in it. Raises CliError for another one."""
    path = folder / METADATA
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        sizes = ("num_examples", "rollouts_per_example")
        changed = sorted(key for key in metadata if key not in sizes and before.get(key) != metadata[key])
        if changed:
            message = f"{folder} holds another evaluation: {', '.join(changed)} differ"
            raise CliError(message, ExitCode.USAGE, hint="--out FOLDER keeps this one elsewhere")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")


def _play(cli: Session, python: Path, job: LocalJob, folder: Path) -> None:
    with cli.terminal.progress(unit="rollouts") as progress:
        bar = progress.add_task(job.model, total=None)
        try:
            for told in play(python, job, folder / "runner.log"):
                progress.update(bar, completed=told.done, total=told.total)
        except KeyboardInterrupt:
            cli.terminal.note(f"stopped; the same command goes on with what is missing in {folder}")
            raise


def summary_of(folder: Path) -> dict[str, Any]:
    """The figures of a folder, computed as the server does, in the shape of its answers."""
    results = read_results(folder)
    samples = {(one["example_id"], one["rollout_number"]): one for one in results.samples}
    scores: dict[str, list[float]] = {}
    for (example, _), sample in samples.items():
        if sample.get("reward") is not None:
            scores.setdefault(str(example), []).append(float(sample["reward"]))
    missing = Counter(sample["state"] for sample in samples.values() if sample.get("reward") is None)
    estimate = mean_estimate(scores)
    rates = [{"k": rate.k, "any_of": rate.any_of, "all_of": rate.all_of} for rate in pass_rates(scores)]
    return {
        "evaluation_id": None,
        "status": "COMPLETED",
        "model_name": results.model,
        "environment_names": [results.environment],
        "total_samples": len(samples),
        "avg_score": estimate.mean if estimate else None,
        "metrics": {"reward_ci95": estimate.interval} if estimate and estimate.interval else {},
        "statistics": {"pass_rates": rates, "missing": dict(missing)},
    }

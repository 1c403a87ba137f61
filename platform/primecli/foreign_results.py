"""Results of an evaluation that ran elsewhere, as a folder: `metadata.json` and `results.jsonl`, as verifiers writes them.

Knows the files and which sample is which, so that the same file pushed twice is there once. Refuses to talk to anybody.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from primecli.output import CliError, ExitCode

METADATA, RESULTS, RECORD = "metadata.json", "results.jsonl", ".prime-eval.json"
LINE_BYTES_MAX = 20 << 20
BATCH_BYTES_MAX, BATCH_SAMPLES_MAX = 8 << 20, 500
AVERAGE_PREFIX = "avg_"


@dataclass(frozen=True)
class Results:
    """`skipped` pairs the number of a line that is no sample with what is wrong with it."""

    metadata: dict[str, Any]
    samples: list[dict[str, Any]]
    skipped: list[tuple[int, str]]
    sha256: str

    @property
    def environment(self) -> str:
        return str(self.metadata.get("env_id") or self.metadata.get("env") or "")

    @property
    def model(self) -> str:
        return str(self.metadata.get("model") or "")

    @property
    def metrics(self) -> dict[str, Any]:
        """`avg_reward` → `reward`."""
        found = self.metadata.items()
        return {name.removeprefix(AVERAGE_PREFIX): value for name, value in found if name.startswith(AVERAGE_PREFIX)}

    @property
    def described(self) -> dict[str, Any]:
        return {name: value for name, value in self.metadata.items() if not name.startswith(AVERAGE_PREFIX)}


def read_results(folder: Path) -> Results:
    """Raises CliError (usage) naming the file and what it lacks."""
    folder = folder.parent if folder.name in (METADATA, RESULTS) else folder
    for name in (METADATA, RESULTS):
        if not (folder / name).is_file():
            raise CliError(f"{folder} has no {name}", ExitCode.USAGE, hint="give the folder that verifiers wrote")
    metadata = _metadata(folder / METADATA)
    samples, skipped, digest = [], [], hashlib.sha256()
    counts: Counter[str] = Counter()
    for number, line in enumerate(_lines(folder / RESULTS), start=1):
        digest.update(line)
        sample, problem = _sample(line)
        if problem:
            skipped.append((number, problem))
        elif sample is not None:
            samples.append(_numbered(sample, counts))
    if not samples:
        raise CliError(f"{folder / RESULTS} holds no sample", ExitCode.USAGE)
    return Results(metadata, samples, skipped, digest.hexdigest())


def _metadata(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CliError(f"{path} is not JSON: {error}", ExitCode.USAGE) from error
    if not isinstance(found, dict) or not found.get("model"):
        raise CliError(f"{path} does not name the model", ExitCode.USAGE)
    return found


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while line := file.readline(LINE_BYTES_MAX + 1):
            if len(line) > LINE_BYTES_MAX:
                raise CliError(f"{path} has a line of more than {LINE_BYTES_MAX} bytes", ExitCode.USAGE)
            yield line


def _sample(line: bytes) -> tuple[dict[str, Any] | None, str]:
    """(sample, what is wrong). An empty line is neither."""
    if not line.strip():
        return None, ""
    try:
        # A harness writes NaN for what it could not score; JSON has no such number.
        found = json.loads(line, parse_constant=lambda _: None)
    except ValueError as error:
        return None, f"not JSON: {error}"
    return (found, "") if isinstance(found, dict) else (None, "not an object")


def _numbered(sample: dict[str, Any], counts: Counter[str]) -> dict[str, Any]:
    """With its example's id and the number of the rollout: its place among the file's rollouts of that example."""
    if sample.get("example_id") is None and sample.get("id") is not None:
        sample["example_id"] = sample["id"]
    if sample.get("example_id") is not None:
        name = str(sample["example_id"])
        sample.setdefault("rollout_number", counts[name])
        counts[name] += 1
    return sample


def batches(samples: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """In order, none larger than the limits; one sample at least."""
    batch: list[dict[str, Any]] = []
    size = 0
    for sample in samples:
        bytes_count = len(json.dumps(sample))
        if batch and (size + bytes_count > BATCH_BYTES_MAX or len(batch) >= BATCH_SAMPLES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(sample)
        size += bytes_count
    if batch:
        yield batch


def recorded(folder: Path) -> Mapping[str, Any]:
    """Where the folder was pushed to before: `evaluation_id`, and the digest of what was pushed once it is complete."""
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def record(folder: Path, evaluation_id: str, sha256: str = "") -> None:
    (folder / RECORD).write_text(json.dumps({"evaluation_id": evaluation_id, "sha256": sha256}) + "\n", encoding="utf-8")

"""R15: an environment tells its secrets wherever it can, in every spelling, and none is in anything that leaves the attempt."""

import base64
import logging
from pathlib import Path
from urllib.parse import quote

import pytest
import zstandard

from tests.fixtures.gates import Gate
from tests.functional.test_orchestrator_sandboxed import done, packed
from trainer.contracts.internal import RolloutBatch, SandboxValues
from trainer.contracts.redaction import MASK

__all__ = ["packed"]
pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]

KEY, OWN = "sk/team+Zm9v-0123456789~canary", "own=run&0123456789-canary"
LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
FILE = base64.b64encode(f"-----BEGIN KEY-----\n{LINE}\n-----END KEY-----\n".encode()).decode()
VALUES = SandboxValues(secrets={"JUDGE_KEY": KEY}, files={"KEY_FILE": FILE})
GIVEN = {"secrets": {"OWN_KEY": OWN}}


def canaries() -> list[str]:
    """Every spelling of every value, and the middle of one that was encoded with something before it."""
    spelled = [spell for value in (KEY, OWN, LINE) for spell in spellings_of(value)]
    return [*spelled, base64.b64encode(f"user:{KEY}".encode()).decode()[8:-8]]


def spellings_of(value: str) -> list[str]:
    data = value.encode()
    return [value, base64.b64encode(data).decode().rstrip("="), data.hex(), data.hex().upper(), quote(value, safe="")]


def whatever_left(place, finish, artifacts: Path, logged: str) -> dict[str, str]:
    """All texts by where they went: the control plane, the artifacts, the process's log."""
    control = place.control
    bodies = [unpacked(base64.b64decode(batch.body_zstd_b64)) for batch in control.rollouts.values()]
    batches = [batch.model_copy(update={"body_zstd_b64": ""}).model_dump_json() for batch in control.rollouts.values()]
    files = {str(path): readable(path) for path in artifacts.rglob("*") if path.is_file()}
    journals = {f"{name} rollouts": "".join(unpacked_parts(text)) for name, text in files.items() if "/steps/" in name}
    events = [event.model_dump_json() for event in control.events.values()]
    told = {"events": events, "rollouts": batches, "bodies": bodies, "finish": [finish.model_dump_json()], "log": [logged]}
    told["phases"] = control.phases
    return {name: "\n".join(texts) for name, texts in told.items()} | files | journals


def unpacked(data: bytes) -> str:
    return zstandard.ZstdDecompressor().decompress(data, max_output_size=1 << 26).decode()


def readable(path: Path) -> str:
    return unpacked(path.read_bytes()) if path.suffix == ".zst" else path.read_bytes().decode(errors="replace")


def unpacked_parts(record: str) -> list[str]:
    """The rollout bodies inside a step's record."""
    _, _, rest = record.partition('"rollouts":')
    batch = RolloutBatch.model_validate_json(rest[: rest.index('}],"usage"') if '}],"usage"' in rest else rest.index(',"usage"')])
    return [unpacked(base64.b64decode(batch.body_zstd_b64))]


def found(texts: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, canary) for name, text in texts.items() for canary in canaries() if canary in text]


@pytest.mark.gate("R15")
async def test_a_run_tells_none_of_its_secrets(packed, runner_dir, tmp_path, caplog, gate: Gate):
    """Logs, events, rollout rows and bodies, journals under the artifact root; the model repeats what its prompt shows."""
    caplog.set_level(logging.INFO)
    finish, place = await done(
        "run",
        packed("secret_leaker"),
        runner_dir,
        tmp_path,
        say=lambda prompt: prompt[:48],
        values=VALUES,
        max_tokens=64,
        **GIVEN,
    )
    texts = whatever_left(place, finish, tmp_path, caplog.text)
    gate.record(trials=len(texts) * len(canaries()), violations=len(found(texts)))
    assert finish.outcome == "completed" and found(texts) == []
    assert all(MASK in texts[name] for name in ("events", "rollouts", "bodies", "log"))
    assert any("/steps/" in name for name in texts)


@pytest.mark.gate("R15")
async def test_an_environment_that_breaks_with_its_secrets_in_its_words_tells_none(
    packed, runner_dir, tmp_path, caplog, gate: Gate
):
    """The failure's message, its detail, the end of its log, and what the last heartbeats say."""
    caplog.set_level(logging.INFO)
    values = VALUES.model_copy(update={"variables": {"BREAK": "1"}})
    finish, place = await done("run", packed("secret_leaker"), runner_dir, tmp_path, values=values, **GIVEN)
    texts = whatever_left(place, finish, tmp_path, caplog.text)
    gate.record(trials=len(texts) * len(canaries()), violations=len(found(texts)))
    assert finish.code == "environment_broken" and found(texts) == []
    assert MASK in finish.message and MASK in finish.detail["log"]

"""An export's process against the real trainer service: files written by the trainer's host, sent in parts, then removed."""

import hashlib
import io
from types import SimpleNamespace

import pytest
from safetensors.torch import load, load_file

from tests.functional.trainer.test_service import RUN_A, open_run, service, step
from tests.numerics.recorded import WEIGHTS, recorded
from trainer.contracts.events import FailureCode
from trainer.contracts.exports import ExportOrder
from trainer.orchestrator import exporting
from trainer.orchestrator.attempt.endings import AttemptOver
from trainer.orchestrator.attempt.services import Service

EXPORT = "cexport" + "0" * 18


class Receiver:
    """The control plane's side: parts by file, and the digests that were told with them."""

    def __init__(self):
        self.files: dict[str, io.BytesIO] = {}
        self.told: dict[str, str] = {}

    async def export_part(self, name, part, entry, data):
        self.files.setdefault(name, io.BytesIO()).write(data)
        self.told[name] = entry.sha256


def place(client, root, order: ExportOrder):
    trainer = Service(client, "http://trainer", "the trainer", FailureCode.TRAINER_UNREACHABLE, lambda code, message: None)
    spec = SimpleNamespace(export=order, subject_id=EXPORT)
    pool = SimpleNamespace(artifact_root=str(root))
    return SimpleNamespace(spec=spec, pool=pool, control=Receiver(), trainer=lambda: trainer, phase=lambda *words: None)


async def trained(client) -> str:
    await open_run(client)
    return (await step(client, recorded(RUN_A, 1, seed=3)[0])).adapter_path


async def test_both_forms_arrive_whole_and_leave_nothing_on_the_trainers_host(tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "PART_BYTES", 100_000)
    monkeypatch.setattr("trainer.contracts.exports.PART_BYTES", 100_000)
    async with service(tmp_path) as client:
        version = await trained(client)
        for form in ("adapter", "merged"):
            here = place(client, tmp_path, ExportOrder(adapter_path=version, form=form))
            finish = await exporting.export_version(here)
            received = {name: file.getvalue() for name, file in here.control.files.items()}
            assert finish.outcome == "completed" and finish.exported.keys() == received.keys()
            assert {name: hashlib.sha256(data).hexdigest() for name, data in received.items()} == here.control.told
            assert list((tmp_path / "exports").iterdir()) == []
            if form == "adapter":
                assert set(received) == {"adapter_model.safetensors", "adapter_config.json"}
    merged, base = load(received["model.safetensors"]), load_file(WEIGHTS / "model.safetensors")
    assert merged.keys() == base.keys() and "tokenizer.json" in received


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"size_max": 1_000}, "more than the 1000 that are allowed"),
        ({"adapter_path": "runs/none/adapters/v1"}, "no committed adapter version"),
        ({"adapter_path": "../elsewhere"}, "outside the artifact root"),
    ],
)
async def test_what_cannot_be_exported_fails_with_the_reason(tmp_path, change, why):
    async with service(tmp_path) as client:
        version = await trained(client)
        here = place(client, tmp_path, ExportOrder(**({"adapter_path": version, "form": "adapter"} | change)))
        with pytest.raises(AttemptOver, match=why) as ending:
            await exporting.export_version(here)
        assert ending.value.code == FailureCode.TRAINER_REFUSED
        assert here.control.files == {}

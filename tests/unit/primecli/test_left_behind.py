"""`prime adapters download` and `prime train fork`: whole files by digest, and what a fork is told."""

import hashlib

import httpx
import pytest

WEIGHTS = b"weights" * 1000
SHA = hashlib.sha256(WEIGHTS).hexdigest()
FILE = {"name": "adapter_model.safetensors", "sha256": SHA, "sizeBytes": len(WEIGHTS), "path": "/rft/exports/cex/files/w"}


def export(state: str, files=(), error=None) -> dict:
    return {"export": {"id": "cex", "state": state, "files": list(files), "error": error}}


@pytest.fixture
def ready(server):
    server.routes["POST", "/api/v1/rft/adapters/cad/exports"] = export("QUEUED")
    server.routes["GET", "/api/v1/rft/exports/cex"] = [export("BUILDING"), export("READY", [FILE])]
    server.routes["GET", "/api/v1/rft/exports/cex/files/w"] = httpx.Response(200, content=WEIGHTS)
    return server


def test_files_are_written_once_they_are_ready(ready, tmp_path):
    done = ready.run("adapters", "download", "cad", "--to", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / FILE["name"]).read_bytes() == WEIGHTS
    assert ready.body(0) == {"form": "adapter"}
    assert len(list((tmp_path / "out").iterdir())) == 1
    asked = len(ready.requests)
    assert ready.run("adapters", "download", "cad", "--to", str(tmp_path / "out")).exit_code == 0
    assert not any("files" in request.url.path for request in ready.requests[asked:]), "what is there is not fetched again"


def test_the_merged_form_is_asked_for(ready, tmp_path):
    ready.run("adapters", "download", "cad", "--merged", "--to", str(tmp_path / "out"))
    assert ready.body(0) == {"form": "merged"}


def test_a_damaged_file_is_refused_and_not_kept(ready, tmp_path):
    ready.routes["GET", "/api/v1/rft/exports/cex/files/w"] = httpx.Response(200, content=WEIGHTS[:-1])
    done = ready.run("adapters", "download", "cad", "--to", str(tmp_path / "out"))
    assert done.exit_code != 0 and "digest" in done.output
    assert list((tmp_path / "out").iterdir()) == []


def test_a_failed_export_says_why(ready, tmp_path):
    ready.routes["GET", "/api/v1/rft/exports/cex"] = export("FAILED", error="the base model is another")
    done = ready.run("adapters", "download", "cad", "--to", str(tmp_path / "out"))
    assert done.exit_code != 0 and "the base model is another" in done.output


def test_a_fork_sends_what_is_changed_and_tells_where_it_came_from(server):
    run = {"id": "cfork", "name": "f", "status": "QUEUED", "forkedFrom": {"runId": "crun", "step": 20, "checkpointId": "cck"}}
    server.routes["POST", "/api/v1/rft/checkpoints/cck/fork"] = {"run": run}
    done = server.run("train", "fork", "cck", "--learning-rate", "1e-5", "--max-steps", "60")
    assert done.exit_code == 0 and "crun at step 20" in done.output
    assert server.body() == {"learning_rate": 1e-5, "max_steps": 60}

"""Which services answer model calls on one machine, by the engine that was chosen."""

import json

import pytest

from trainer.inference.vllm import command, prepare
from workers.embedded.engines import engine_services
from workers.embedded.stack import Stack


@pytest.fixture
def make_stack(tmp_path, monkeypatch):
    monkeypatch.delenv("ROOTSTOCK_VLLM_DIR", raising=False)
    return lambda engine: Stack.open(tmp_path / "stack", engine=engine)


def flag(arguments, name):
    return arguments[arguments.index(name) + 1]


@pytest.mark.parametrize("engine", ["torch", "vllm"])
def test_the_engine_s_address_is_the_same_whatever_answers(make_stack, engine):
    stack = make_stack(engine)
    inference = next(service for service in engine_services(stack) if service.name == "inference")
    assert flag(inference.command, "--port") == str(stack.ports["inference"])
    assert flag(inference.command, "--artifacts") == str(stack.artifacts)
    assert inference.environment["ROOTSTOCK_POOL_TOKEN"]


def test_the_routes_stand_in_front_of_vllm(make_stack):
    vllm, front = engine_services(make_stack("vllm"))
    assert flag(front.command, "--upstream") == f"http://127.0.0.1:{flag(vllm.command, '--port')}"
    assert "--base-through-zero-adapter" in front.command, "rows without an adapter get another's on CPU"


def test_vllm_listens_on_loopback_and_is_handed_no_secret(monkeypatch):
    monkeypatch.setenv("ROOTSTOCK_POOL_TOKEN", "secret")
    became = []
    monkeypatch.setattr("os.execve", lambda *started: became.append(started))
    monkeypatch.setattr("sys.argv", ["command", "--python", "/venv/bin/python", "--model", "tiny", "--port", "8000"])
    command.main()
    program, arguments, environment = became[0]
    assert (program, flag(arguments, "--host"), flag(arguments, "--port")) == ("/venv/bin/python", "127.0.0.1", "8000")
    assert "secret" not in environment.values() and "ROOTSTOCK_POOL_TOKEN" not in environment


def test_a_missing_vllm_says_how_to_install_it(make_stack):
    vllm, _ = engine_services(make_stack("vllm"))
    with pytest.raises(RuntimeError, match=r"trainer\.inference\.vllm\.prepare"):
        vllm.before()


def test_an_environment_of_other_versions_is_built_again(tmp_path):
    assert not prepare.is_ready(tmp_path)
    marker = tmp_path / prepare.MARKER
    marker.write_text(json.dumps({"digest": prepare._digest()}))
    assert prepare.is_ready(tmp_path)
    marker.write_text(json.dumps({"digest": "another"}))
    assert not prepare.is_ready(tmp_path)

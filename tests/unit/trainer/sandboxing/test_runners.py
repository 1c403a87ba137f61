"""What a runner's box holds, and which socket the host talks to."""

import os
import socket
from pathlib import Path

import pytest

from trainer.sandboxing import runners
from trainer.sandboxing.base_venv import BaseVenv
from trainer.sandboxing.releases import ReleaseVenv
from trainer.sandboxing.specs import SandboxLimits

RELEASE = ReleaseVenv(Path("/runner/releases/r1"), "tasks", BaseVenv(Path("/runner/base"), "d", (3, 11, 2), Path("/usr")))


@pytest.fixture
def folder():
    with runners.runner_folder() as folder:
        yield folder


def test_the_box_sees_the_environments_our_runner_the_tokenizer_and_one_folder(folder, tmp_path):
    spec = runners.runner_spec(RELEASE, tmp_path, folder, "box", SandboxLimits(), {"lease": "c1"})
    targets = {mount.target: mount.writable for mount in spec.mounts}
    code = {f"/rootstock/trainer/{part}" for part in ("__init__.py", "contracts", "runner")}
    assert set(targets) == {"/runner/base", "/runner/releases/r1", "/models/tokenizer", "/run/rootstock", *code}
    assert [target for target, writable in targets.items() if writable] == ["/run/rootstock"]
    assert spec.argv[0] == "/runner/releases/r1/bin/python"
    assert spec.labels == {"lease": "c1"}


def test_the_folder_is_private_short_and_goes_away():
    with runners.runner_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert len(str(folder / "model.sock")) < 108
    assert not folder.exists()


def test_the_socket_is_opened_once_it_is_there(folder):
    path = folder / "run.sock"
    assert runners._open_socket(path) == -1
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(str(path))
        server.listen()
        fd = runners._open_socket(path)
        path.unlink()
        client.connect(f"/proc/self/fd/{fd}")
        os.close(fd)


def test_a_link_to_a_socket_of_the_host_is_not_followed(folder):
    elsewhere = folder / "elsewhere.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(elsewhere))
        (folder / "run.sock").symlink_to(elsewhere)
        assert runners._open_socket(folder / "run.sock") == -1


def test_a_plain_file_is_no_socket(folder):
    (folder / "run.sock").write_text("")
    assert runners._open_socket(folder / "run.sock") == -1

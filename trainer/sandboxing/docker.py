"""The Docker driver: the same box by an engine on this host, through its command line; used where asked and available.

Knows `docker run`'s flags. Refuses to know what runs inside. The image is empty: /usr and the environments are bound read-only
from the host, as in the bubblewrap driver, so that no registry is needed and both boxes see the same files and refuse the same
system calls: an engine's own profile differs by its age, and older ones let io_uring through. No capabilities, no network.
"""

import asyncio
import json
import os
import shutil
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from pathlib import Path

from trainer.sandboxing.mounts import system_links, system_mounts
from trainer.sandboxing.seccomp import docker_profile
from trainer.sandboxing.specs import EndReason, Mount, Sandbox, SandboxSpec, SandboxStartFailed, SandboxUnavailable
from trainer.sandboxing.supervised import SupervisedSandbox

IMAGE = "rootstock-sandbox:empty"
LABEL = "rootstock.sandbox"
_SHM_BYTES = 16 * 1024 * 1024
_CALL_S = 30.0
_EMPTY_TAR = b"\0" * 10240


class DockerDriver:
    name = "docker"

    def __init__(self, docker: str | None = None) -> None:
        self._docker = docker or shutil.which("docker")
        self._has_image = False
        self._folder = tempfile.TemporaryDirectory(prefix="rootstock-docker-")

    async def unavailable(self) -> str | None:
        if self._docker is None:
            return "the docker command is not installed"
        code, output = await self.call("version", "--format", "{{.Server.Os}}")
        if code:
            return f"no Docker engine answers: {output.splitlines()[-1] if output else 'no message'}"
        return None if output.strip() == "linux" else f"the Docker engine runs {output.strip()}, not linux"

    async def start(self, spec: SandboxSpec) -> Sandbox:
        if reason := await self.unavailable():
            raise SandboxUnavailable(reason)
        assert self._docker is not None
        await self._ensure_image()
        argv = docker_argv(self._docker, spec, os.getuid(), os.getgid(), profile=self._seccomp_profile())
        process = await asyncio.create_subprocess_exec(*argv, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True)
        return SupervisedSandbox(spec, process, _Container(self, container_name(spec.sandbox_id)))

    async def _ensure_image(self) -> None:
        if self._has_image:
            return
        if (await self.call("image", "inspect", IMAGE))[0]:
            code, output = await self.call("import", "-", IMAGE, stdin=_EMPTY_TAR)
            if code:
                raise SandboxStartFailed(f"cannot make the empty image: {output}")
        self._has_image = True

    def _seccomp_profile(self) -> Path:
        """The docker command takes a profile from a file alone; it lasts as long as this driver."""
        path = Path(self._folder.name, "seccomp.json")
        if not path.exists():
            path.write_text(json.dumps(docker_profile()))
        return path

    async def boxes(self) -> dict[str, dict[str, str]]:
        """Labels of every container of ours on this engine, by the container's name. Empty where there is no engine."""
        if self._docker is None:
            return {}
        code, output = await self.call("ps", "--all", "--filter", f"label={LABEL}", "--format", "{{.Names}}\t{{.Labels}}")
        rows = [] if code else [line.split("\t", 1) for line in output.splitlines() if "\t" in line]
        return {name: dict(pair.split("=", 1) for pair in labels.split(",") if "=" in pair) for name, labels in rows}

    async def remove(self, name: str) -> None:
        await self.call("rm", "--force", name)

    async def call(self, *arguments: str, stdin: bytes = b"") -> tuple[int, str]:
        """(exit code, output) of one short docker command."""
        assert self._docker is not None
        process = await asyncio.create_subprocess_exec(self._docker, *arguments, stdin=PIPE, stdout=PIPE, stderr=STDOUT)
        try:
            output, _ = await asyncio.wait_for(process.communicate(stdin), _CALL_S)
        except TimeoutError:
            process.kill()
            return 124, f"docker {arguments[0]} gave no answer in {_CALL_S:g} s"
        assert process.returncode is not None
        return process.returncode, output.decode(errors="replace").strip()


def container_name(sandbox_id: str) -> str:
    return f"rootstock-{sandbox_id}"


def docker_argv(docker: str, spec: SandboxSpec, uid: int, gid: int, *, profile: Path) -> list[str]:
    """`docker run` of one box. It runs as the caller, without any capability, so that the caller's bound folders are writable."""
    limits = spec.limits
    argv = [docker, "run", "--name", container_name(spec.sandbox_id), "--label", f"{LABEL}={spec.sandbox_id}"]
    for name, value in spec.labels.items():
        argv += ["--label", f"{name}={value}"]
    argv += ["--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    argv += ["--security-opt", f"seccomp={profile}"]
    argv += ["--user", f"{uid}:{gid}", "--hostname", "sandbox", "--init=false", "--log-driver", "none"]
    argv += ["--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes)]
    argv += ["--cpus", f"{limits.cpu_cores:g}", "--pids-limit", str(limits.processes_max), "--shm-size", str(_SHM_BYTES)]
    argv += ["--ulimit", "core=0", "--ulimit", f"fsize={limits.file_bytes}"]
    argv += ["--ulimit", f"nofile={limits.open_files_max}:{limits.open_files_max}"]
    argv += ["--tmpfs", f"/tmp:rw,exec,nosuid,nodev,mode=1777,size={limits.disk_bytes}"]
    for mount in (*system_mounts(), *_followed_links(), *spec.mounts):
        argv += ["--mount", f"type=bind,source={mount.source},target={mount.target}{'' if mount.writable else ',readonly'}"]
    for name, value in {"HOME": "/tmp", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **spec.env}.items():
        argv += ["--env", f"{name}={value}"]
    return [*argv, "--workdir", spec.workdir, "--entrypoint", spec.argv[0], IMAGE, *spec.argv[1:]]


def _followed_links() -> tuple[Mount, ...]:
    """An empty image has no links: what is one on the host is bound as the folder behind it."""
    return tuple(Mount(Path("/", target).resolve(), link) for target, link in system_links())


class _Container:
    """Implements `supervised.Box` for one container; the engine enforces every limit by itself."""

    def __init__(self, driver: DockerDriver, name: str) -> None:
        self._driver, self._name = driver, name

    def breach(self) -> tuple[EndReason, str] | None:
        return None

    async def kill(self) -> None:
        await self._driver.call("kill", self._name)

    async def end(self, exit_code: int) -> tuple[EndReason, float | None, int | None]:
        _, state = await self._driver.call("inspect", "--format", "{{.State.OOMKilled}}", self._name)
        await self._driver.call("rm", "--force", self._name)
        return "oom" if state == "true" else "exit", None, None

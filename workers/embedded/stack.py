"""Where the one-machine stack lives: its folders, ports and secrets, and the variables that its processes are started with.

Knows what it serves by name. Refuses to know which processes there are (`services`).
"""

import json
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from trainer.contracts.catalogue import MODELS_DIR_VARIABLE
from workers.embedded.postgres import Postgres
from workers.embedded.valkey import Valkey

REPOSITORY = Path(__file__).resolve().parents[2]
PORT_NAMES = ("web", "internal", "trainer", "inference", "vllm", "valkey")
BASE_MODEL = "tiny"
ENGINES = ("torch", "vllm")
"""What can answer model calls (`engines`)."""
PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
    "DOCKER_HOST",
    "ROOTSTOCK_SANDBOX_BACKEND",
)


class StackError(RuntimeError):
    """A step of the set-up failed; the text carries its output."""


@dataclass(frozen=True)
class Stack:
    """Everything lives under `root` (`.rootstock/`). Ports and secrets are chosen once and kept, so that addresses survive a
    restart; a port that somebody else took meanwhile is chosen anew."""

    root: Path
    ports: dict[str, int]
    secrets: dict[str, str]
    model: str = BASE_MODEL
    engine: str = ENGINES[0]

    @classmethod
    def open(cls, root: Path, *, model: str = BASE_MODEL, engine: str = ENGINES[0]) -> "Stack":
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        ports = _load(root / "ports.json")
        ports = {name: port if (port := ports.get(name, 0)) and _is_free(port) else _free_port() for name in PORT_NAMES}
        _store(root / "ports.json", ports)
        _store(root / "serves.json", {"model": model, "engine": engine})
        return cls(root, ports, cls._open_secrets(root), model=model, engine=engine)

    @classmethod
    def running(cls, root: Path) -> "Stack":
        """The stack as it was started, without choosing anything."""
        return cls(root, _load(root / "ports.json"), _load(root / "secrets.json"), **_load(root / "serves.json"))

    @staticmethod
    def _open_secrets(root: Path) -> dict[str, str]:
        known = _load(root / "secrets.json")
        made = {name: known.get(name) or secrets.token_urlsafe(32) for name in ("secret_key", "pool_token", "valkey_password")}
        _store(root / "secrets.json", made)
        return made

    @property
    def postgres(self) -> Postgres:
        return Postgres(self.root / "postgres")

    @property
    def valkey(self) -> Valkey:
        return Valkey(self.root / "valkey", port=self.ports["valkey"], password=self.secrets["valkey_password"])

    @property
    def state_file(self) -> Path:
        return self.root / "supervisor.json"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def runner(self) -> Path:
        """The runner's base takes half a minute to build and is the same for every stack of a machine, so it can be shared."""
        return Path(os.environ.get("ROOTSTOCK_RUNNER_DIR") or self.root / "runner").resolve()

    @property
    def models(self) -> Path:
        """Where base models lie that do not ship with the package. They can be shared too."""
        return Path(os.environ.get(MODELS_DIR_VARIABLE) or self.root / "models").resolve()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.ports['web']}"

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}"

    def environment(self) -> dict[str, str]:
        """What every process of ours is started with; nothing of the caller's own settings leaks in but the few listed."""
        home = self.root / "home"
        home.mkdir(exist_ok=True, mode=0o700)
        kept = {name: value for name in PASSED_ON if (value := os.environ.get(name))}
        postgres = self.postgres
        return kept | {
            "HOME": str(home),
            "PYTHONPATH": os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "platform"))),
            "PYTHONUNBUFFERED": "1",
            "DJANGO_SETTINGS_MODULE": "controlplane.settings",
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "passive",
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "DATABASE_URL": os.environ.get("DATABASE_URL") or postgres.url("rootstock_app", "rootstock"),
            "DATABASE_ADMIN_URL": os.environ.get("DATABASE_ADMIN_URL") or postgres.url("postgres", "rootstock"),
            "BROKER_URL": os.environ.get("BROKER_URL") or self.valkey.url,
            "ROOTSTOCK_OBJECT_STORE_URL": os.environ.get("ROOTSTOCK_OBJECT_STORE_URL") or f"file://{self.root / 'objects'}",
            "ROOTSTOCK_SECRET_KEY": self.secrets["secret_key"],
            "ROOTSTOCK_POOL_TOKEN": self.secrets["pool_token"],
            "ROOTSTOCK_PUBLIC_ORIGIN": self.origin,
            "ROOTSTOCK_INTERNAL_URL": self.url("internal"),
            "ROOTSTOCK_ARTIFACT_ROOT": str(self.artifacts),
            "ROOTSTOCK_RUNNER_DIR": str(self.runner),
            MODELS_DIR_VARIABLE: str(self.models),
            "ROOTSTOCK_LOG_DIR": str(self.logs),
        }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _load(path: Path) -> dict:  # type: ignore[type-arg]
    return json.loads(path.read_text()) if path.exists() else {}


def _store(path: Path, document: dict) -> None:  # type: ignore[type-arg]
    partial_file = path.with_suffix(".partial")
    partial_file.touch(mode=0o600)
    partial_file.write_text(json.dumps(document, indent=1))
    partial_file.replace(path)

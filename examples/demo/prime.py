"""The demo's hands: the `prime` command in its own home folder, and the REST API where a program would use it.

Nothing here reaches into the product: every fact comes through a public interface.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

COMMAND_DEADLINE_S = 600.0


class DemoError(RuntimeError):
    """A step of the demo failed; the text says which command and what it printed."""


@dataclass
class Prime:
    """One person's command line: own home, own key, one server."""

    home: Path
    origin: str
    key: str = ""
    _http: httpx.Client | None = field(default=None, repr=False)

    def environment(self) -> dict[str, str]:
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        ours = {name: value for name, value in os.environ.items() if not name.startswith("PRIME_")}
        return (
            ours
            | {
                "HOME": str(self.home),
                "PRIME_API_BASE_URL": self.origin,
                "PRIME_FRONTEND_URL": self.origin,
                "PRIME_INFERENCE_URL": f"{self.origin}/api/inference/v1",
                "NO_PROXY": "127.0.0.1,localhost",
            }
            | ({"PRIME_API_KEY": self.key} if self.key else {})
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [str(Path(sys.executable).parent / "prime"), *arguments, "--output", "json"]
        return subprocess.Popen(
            command, env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def finish(self, process: subprocess.Popen[str]) -> Any:
        out, err = process.communicate(timeout=COMMAND_DEADLINE_S)
        if process.returncode != 0:
            arguments = process.args[1:] if isinstance(process.args, list) else process.args
            raise DemoError(f"prime {arguments} ended with {process.returncode}: {(err or out).strip()[-2000:]}")
        # A command that follows prints one JSON document per line; its last one is the result.
        try:
            return json.loads(out)
        except ValueError:
            return json.loads(out.strip().splitlines()[-1])

    def __call__(self, *arguments: str) -> Any:
        return self.finish(self.start(*arguments))

    @property
    def http(self) -> httpx.Client:
        if self._http is None:
            headers = {"Authorization": f"Bearer {self.key}"}
            self._http = httpx.Client(base_url=f"{self.origin}/api/v1", headers=headers, timeout=60, trust_env=False)
        return self._http

    def get(self, path: str, **query: Any) -> Any:
        response = self.http.get(path, params=query)
        if response.status_code != 200:
            raise DemoError(f"GET {path} answered {response.status_code}: {response.text[:500]}")
        return response.json()

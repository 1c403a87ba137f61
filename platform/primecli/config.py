"""Settings of the `prime` command, shared with the public client: one JSON file, profiles beside it, and PRIME_* variables.

Precedence: variable, then profile, then file, then default. Knows nothing of HTTP. Without any setting it points at a Rootstock
on this machine, never elsewhere.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from primecli.output import CliError, ExitCode

LOCAL_URL = "http://127.0.0.1:8000"
PUBLIC_CLIENT_DOMAIN = "primeintellect.ai"
"""The public client writes its own defaults into the shared file; an address that nobody chose does not count as a choice."""

VARIABLES = {
    "api_key": ("PRIME_API_KEY",),
    "base_url": ("PRIME_API_BASE_URL", "PRIME_BASE_URL"),
    "frontend_url": ("PRIME_FRONTEND_URL",),
    "inference_url": ("PRIME_INFERENCE_URL",),
    "team_id": ("PRIME_TEAM_ID",),
    "user_id": ("PRIME_USER_ID",),
}
URL_FIELDS = frozenset({"base_url", "frontend_url", "inference_url"})


@dataclass(frozen=True)
class Config:
    """`stored` is the file (or profile) as it is on disk, with keys that only other clients know."""

    folder: Path
    profile: str | None = None
    stored: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, profile: str | None = None, environ: Mapping[str, str] | None = None) -> "Config":
        """Read what is there; a missing file is an empty one, a missing profile is an error that names it."""
        environ = os.environ if environ is None else environ
        folder = Path(environ.get("HOME") or Path.home()) / ".prime"
        profile = profile or environ.get("PRIME_CONTEXT") or None
        path = _file(folder, profile)
        if profile and not path.exists():
            raise CliError(f"no profile '{profile}' in {path.parent}", ExitCode.NOT_FOUND)
        return cls(
            folder,
            profile,
            _read(path),
            {name: environ[name] for names in VARIABLES.values() for name in names if name in environ},
        )

    def value(self, key: str) -> str:
        """One setting as text, '' when nobody set it."""
        for variable in VARIABLES.get(key, ()):
            if self.variables.get(variable):
                return self.variables[variable]
        stored = str(self.stored.get(key) or "")
        return "" if key in URL_FIELDS and _is_public_default(stored) else stored

    @property
    def api_key(self) -> str:
        return self.value("api_key")

    @property
    def team_id(self) -> str:
        return self.value("team_id")

    @property
    def base_url(self) -> str:
        """Origin of the control plane, without `/api/v1`, which some people put into it."""
        return (self.value("base_url") or LOCAL_URL).rstrip("/").removesuffix("/api/v1")

    @property
    def frontend_url(self) -> str:
        return (self.value("frontend_url") or self.base_url).rstrip("/")

    @property
    def inference_url(self) -> str:
        return (self.value("inference_url") or f"{self.base_url}/api/inference/v1").rstrip("/")

    @property
    def path(self) -> Path:
        return _file(self.folder, self.profile)

    def save(self, **changes: Any) -> "Config":
        """Write changes beside what is stored; None removes a key. The file holds a key: nobody else may read it."""
        merged = {key: value for key, value in {**self.stored, **changes}.items() if value is not None}
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".config-")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(merged, stream, indent=2)
            stream.write("\n")
        os.replace(temporary, self.path)
        return Config(self.folder, self.profile, merged, self.variables)


def _file(folder: Path, profile: str | None) -> Path:
    return folder / "environments" / f"{profile}.json" if profile else folder / "config.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CliError(f"cannot read {path}: {error}") from error
    if not isinstance(stored, dict):
        raise CliError(f"cannot read {path}: it holds no JSON object")
    return stored


def _is_public_default(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host == PUBLIC_CLIENT_DOMAIN or host.endswith(f".{PUBLIC_CLIENT_DOMAIN}")

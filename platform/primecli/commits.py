"""From which commit a folder is pushed, as git tells it. Knows git's command line alone; a folder outside a repository has none.

The hub shows it as the sender's word: nobody can prove from an archive which commit it came from.
"""

import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

GIT_TIMEOUT_S = 5
REPOSITORY_MAX_CHARACTERS = 500


def commit_of(root: Path) -> dict[str, Any]:
    """`commit`, `commit_is_clean` (nothing below the folder differs from it) and `repository`; empty where git knows none."""
    commit = _git(root, "rev-parse", "HEAD")
    if not commit or not re.fullmatch(r"[0-9a-f]{40,64}", commit):
        return {}
    changed = _git(root, "status", "--porcelain", "--", ".")
    told: dict[str, Any] = {"commit": commit, "commit_is_clean": changed == ""}
    if repository := web_address(_git(root, "remote", "get-url", "origin") or ""):
        told["repository"] = repository
    return told


def web_address(remote: str) -> str | None:
    """A remote as an address for readers, without the credentials that one may hold: `git@host:o/r.git` → `https://host/o/r`."""
    if match := re.fullmatch(r"(?:ssh://)?[\w.-]+@([\w.-]+)[:/](?:\d+/)?(.+)", remote):
        address = f"https://{match[1]}/{match[2]}"
    else:
        parts = urlsplit(remote)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            return None
        port = f":{parts.port}" if parts.port else ""
        address = f"{parts.scheme}://{parts.hostname}{port}{parts.path}"
    address = address.rstrip("/").removesuffix(".git")
    return address if len(address) <= REPOSITORY_MAX_CHARACTERS and re.fullmatch(r"https?://[^@\s]+", address) else None


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints, or None where there is no git, no repository, or no answer in time."""
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

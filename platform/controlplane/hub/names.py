"""What an environment may be called. Pure text: normalisation, and the names that are taken for good.

A release is installed over a base environment, first on the import path: a name of the base, of the standard library or of ours
would shadow it there, and a built-in taskset's or harness's name would never be looked up on the hub at all.
"""

import re
import sys

NAME_PATTERN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")

OURS = frozenset(
    {"rootstock", "rootstock-lab", "prime", "primecli", "controlplane", "trainer", "workers", "migrations", "platform"}
)
ROUTES = frozenset({"resolve", "lookup", "wheels", "versions", "secrets", "variables", "status", "fork", "simple", "packages"})
"""Words that stand where a name could in the hub's addresses."""
BASE = frozenset(
    {
        "aiohttp", "anyio", "datasets", "hatchling", "httpx", "mcp", "msgpack", "numpy", "openai", "pip", "pydantic", "renderers",
        "setuptools", "tokenizers", "transformers", "uv", "verifiers", "wheel",
    }
)  # fmt: skip
"""Distributions that every release is layered on."""
BUILT_IN = frozenset(
    {
        "harbor", "nemo-gym", "openenv", "textarena",
        "bash", "browser-use", "claude-code", "codex", "hermes-agent", "kimi-code", "mini-swe-agent", "node", "null", "openclaw",
        "pi", "prime-agent", "rlm", "terminus-2", "utils",
        "decision", "reference", "rubric",
        "agentic-judge", "best-of-n", "isolated-verifier", "shared-agentic-judge", "single-agent", "user-sim",
    }
)  # fmt: skip
"""Tasksets, harnesses, judges and environments that the pinned `verifiers` resolves itself before it looks for a package."""
STANDARD_LIBRARY = frozenset(name.replace("_", "-").lower() for name in sys.stdlib_module_names)


def normalize(name: str) -> str:
    """The one spelling of a project's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def module_name(name: str) -> str:
    """The import name that a project of this name has by custom."""
    return normalize(name).replace("-", "_")


def refusal(name: str) -> str | None:
    """Why a name cannot be had, or None."""
    if not NAME_PATTERN.fullmatch(name):
        return f"'{name}' is not a project name: 1 to 100 letters, digits, '.', '-', '_', not '.', '-', '_' at an end"
    normal = normalize(name)
    for reserved, whose in (
        (OURS, "Rootstock's own"),
        (STANDARD_LIBRARY, "a module of Python's standard library"),
        (BASE, "a package that every environment is layered on"),
        (BUILT_IN, "built into the environment library"),
        (ROUTES, "a word of the hub's own addresses"),
    ):
        if normal in reserved:
            return f"'{name}' is taken: it is {whose}"
    return None


def module_refusal(module: str) -> str | None:
    """Why a wheel may not bring this top-level module, or None."""
    normal = module.replace("_", "-").lower()
    if normal in STANDARD_LIBRARY | OURS | BASE:
        return f"it would shadow the module '{module}', which environments rely on"
    return None

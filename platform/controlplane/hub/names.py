"""What an environment may be called. Pure text: normalisation, and the names that are taken for good.

A release is installed over a base environment, first on the import path: a name of the base, of the standard library or of ours
would shadow it there, and a built-in taskset's or harness's name would never be looked up on the hub at all. Names that only look
like one of these, or are a keystroke away from one, are refused as well: whoever mistypes a name must not get a stranger's code.
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
WORDS = frozenset(
    {
        "bash", "datasets", "decision", "migrations", "node", "null", "platform", "prime", "reference", "rubric", "tokenizers",
        "trainer", "utils", "wheel", "workers",
    }
)  # fmt: skip
"""Names above that are ordinary words: an environment may well be called one letter differently (`decisions`, `trainers`)."""
TYPED_MIN_CHARACTERS = 6
"""Shorter names are a keystroke away from too many honest ones."""
_RESERVED = (
    (OURS, "Rootstock's own"),
    (STANDARD_LIBRARY, "a module of Python's standard library"),
    (BASE, "a package that every environment is layered on"),
    (BUILT_IN, "built into the environment library"),
    (ROUTES, "a word of the hub's own addresses"),
)
_SAME_LOOK = str.maketrans("01i", "oll", "-")


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
    for reserved, whose in _RESERVED:
        if normal in reserved:
            return f"'{name}' is taken: it is {whose}"
        if meant := _meant(normal, reserved):
            return f"'{name}' is too close to '{meant}', {whose}; people would take one for the other"
    return None


def skeleton(name: str) -> str:
    """What is left of a name for a hasty reader: `d1git-surn` and `digit-sum` have one skeleton. The database has the same rule
    (migrations/hub/0002)."""
    return normalize(name).translate(_SAME_LOOK).replace("rn", "m").replace("vv", "w")


def one_edit_apart(one: str, other: str) -> bool:
    """Whether at most one letter was left out, added, changed, or two neighbours swapped."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = next(
        (at for at, (here, there) in enumerate(zip(one, other, strict=False)) if here != there), min(len(one), len(other))
    )
    here, there = one[start:], other[start:]
    return here[1:] == there[1:] or here[1:] == there or here == there[1:] or (here[:2], here[2:]) == (there[1::-1], there[2:])


def owners_look_alike(one: str, other: str) -> bool:
    """Whether a reader could take one owner for the other. `lab-1` and `lab-2` are told apart: people read figures."""
    if skeleton(one) == skeleton(other):
        return True
    is_long = min(len(one), len(other)) >= TYPED_MIN_CHARACTERS
    return is_long and re.findall(r"\d", one) == re.findall(r"\d", other) and one_edit_apart(one, other)


def _meant(normal: str, reserved: frozenset[str]) -> str | None:
    """The reserved name that `normal` looks like or is mistyped from."""
    for name in sorted(reserved):
        if skeleton(normal) == skeleton(name):
            return name
        is_typed = name not in WORDS | STANDARD_LIBRARY | ROUTES and min(len(name), len(normal)) >= TYPED_MIN_CHARACTERS
        if is_typed and one_edit_apart(normal, name):
            return name
    return None


def module_refusal(module: str) -> str | None:
    """Why a wheel may not bring this top-level module, or None."""
    normal = module.replace("_", "-").lower()
    if normal in STANDARD_LIBRARY | OURS | BASE:
        return f"it would shadow the module '{module}', which environments rely on"
    return None

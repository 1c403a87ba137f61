"""The interfaces of the `verifiers` library that a package may be written for, and what a runner of each needs.

Knows two: a package exports a `Taskset`, or, as packages did until 0.3.1, defines `load_environment`. One process cannot hold
both versions of the library.
"""

from collections.abc import Mapping
from typing import Literal

Interface = Literal["taskset", "load_environment"]
LIBRARY_VERSIONS: Mapping[Interface, str] = {"taskset": "0.4.0", "load_environment": "0.3.1"}
RUNNER_REQUIREMENTS: Mapping[Interface, tuple[str, ...]] = {
    "taskset": ("verifiers==0.4.0", "renderers==0.1.12", "hatchling==1.33.0", "uv==0.13.9"),
    "load_environment": ("verifiers==0.3.1", "renderers==0.1.10"),
}
"""What every environment runner has, in a sandbox and elsewhere. Later releases of `renderers` lack what 0.3.1 imports of it."""

"""The example environments' plain modules, loaded by file: their packages import verifiers, which only the runner's base has."""

import importlib.util
from types import ModuleType

from tests.fixtures.places import REPOSITORY


def plain_module(environment: str, name: str) -> ModuleType:
    path = REPOSITORY / "examples" / "environments" / environment / environment / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{environment}_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

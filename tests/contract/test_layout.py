"""The shape of the tree: sizes, names, docstrings, and nothing that belongs to one machine."""

import ast
import platform
import re
import subprocess

import pytest

from tests.contract.source import Module, modules, product_modules
from tests.fixtures.places import REPOSITORY

MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
VIEW_LINES_MAX = 25
FORBIDDEN_NAMES = frozenset({"utils.py", "helpers.py", "common.py", "misc.py"})
# Spelled in pieces, so that this file does not contain what it forbids.
MACHINE_PATHS = re.compile(r"(?<![\w.$}*])/(?:" + "|".join(["work", "root", "home/" + r"\w+"]) + r")/\w")
TEXT_SUFFIXES = frozenset({".py", ".md", ".toml", ".json", ".yaml", ".yml", ".ts", ".tsx", ".css", ".html", ".sh", ".txt", ".tf"})


def test_platform_is_a_source_root_and_never_a_package():
    assert not (REPOSITORY / "platform" / "__init__.py").exists()
    assert platform.system()


def test_no_drawer_modules():
    assert [module.name for module in modules() if module.path.name in FORBIDDEN_NAMES] == []


def test_modules_are_readable_in_one_sitting():
    assert {module.name: len(module.lines) for module in modules() if len(module.lines) > MODULE_LINES_MAX} == {}


def test_functions_fit_a_screen():
    assert long_functions(modules(), FUNCTION_LINES_MAX) == []


def test_views_only_parse_call_and_render():
    views = tuple(module for module in product_modules() if re.fullmatch(r"api(_\w+)?\.py", module.path.name))
    assert long_functions(views, VIEW_LINES_MAX) == []


def test_every_module_says_what_it_is():
    silent = [module.name for module in modules() if module.text.strip() and not ast.get_docstring(module.tree)]
    assert silent == []


def test_function_level_imports_say_why():
    assert [place for module in product_modules() for place in unexplained_imports(module)] == []


def test_nothing_names_a_machine():
    found = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name in _tracked_texts()
        for number, line in enumerate((REPOSITORY / name).read_text(errors="replace").splitlines(), 1)
        if MACHINE_PATHS.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("line", "refused"), [("open('/wo" + "rk/main/x')", True), ("GET /home" + "/ada/x", True), ("a/root/b", False)]
)
def test_the_machine_rule_itself(line: str, refused: bool):
    assert bool(MACHINE_PATHS.search(line)) is refused


def long_functions(chosen: tuple[Module, ...], limit: int) -> list[str]:
    return [
        f"{module.name}:{function.name} has {length} lines"
        for module in chosen
        for function in module.functions()
        if (length := (function.end_lineno or 0) - function.lineno + 1) > limit
    ]


def unexplained_imports(module: Module) -> list[str]:
    """Imports inside functions without a comment on the line, or above the group that they stand in."""
    places = []
    for function in module.functions():
        block = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
        explained = 0
        for node in sorted(block, key=lambda node: node.lineno):
            line, above = module.lines[node.lineno - 1], module.lines[node.lineno - 2].strip()
            if "#" in line or above.startswith("#") or node.lineno - 1 == explained:
                explained = node.end_lineno or node.lineno
            else:
                places.append(f"{module.name}:{node.lineno}")
    return places


def _tracked_texts() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=REPOSITORY, capture_output=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: there is no list of the project's files")
    names = [name for name in listed.stdout.decode().split("\0") if name]
    return [name for name in names if (REPOSITORY / name).suffix in TEXT_SUFFIXES and (REPOSITORY / name).is_file()]

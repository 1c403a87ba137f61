"""The table of error codes is the code's, both ways, and the document is the table."""

import ast
from collections.abc import Iterator

from controlplane.core.error_codes import CODES, document
from controlplane.core.errors import ApiError
from tests.contract.source import Module, product_modules
from tests.fixtures.places import REPOSITORY

# Each carries codes that are not those of an answer.
APART = {"platform/controlplane/core/error_codes.py": "the table", "platform/controlplane/runs/services.py": "events of a run"}


def _family(base: type[ApiError]) -> Iterator[type[ApiError]]:
    yield base
    for child in base.__subclasses__():
        yield from _family(child)


FAMILY = {error.__name__: error for error in _family(ApiError)}


def codes_in(module: Module) -> Iterator[tuple[str, int | None]]:
    """Codes that a module spells, with the status where it stands beside or its error's class fixes one."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            fixed = {one.targets[0].id: one.value for one in node.body if isinstance(one, ast.Assign) and _named(one)}
            if isinstance(fixed.get("code"), ast.Constant):
                yield fixed["code"].value, getattr(fixed.get("status"), "value", None)
        if isinstance(node, ast.Call):
            given = {word.arg: word.value for word in node.keywords}
            if isinstance(given.get("code"), ast.Constant):
                fixed_by = FAMILY.get(getattr(node.func, "id", ""))
                yield given["code"].value, getattr(given.get("status"), "value", fixed_by and fixed_by.status)
            if getattr(node.func, "id", "") == "Problem" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
                yield node.args[1].value, node.args[0].value
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_DRF_CODES":
            yield from ((value.value, key.value) for key, value in zip(node.value.keys, node.value.values, strict=True))


def _named(assignment: ast.Assign) -> bool:
    return isinstance(assignment.targets[0], ast.Name)


def spelled() -> set[tuple[str, int | None]]:
    asked = [one for one in product_modules() if one.name.startswith("platform/controlplane/") and one.name not in APART]
    return {found for module in asked for found in codes_in(module) if isinstance(found[0], str)}


def test_every_code_is_in_the_table_and_every_entry_is_used():
    found = {code for code, _ in spelled()} | {error.code for error in _family(ApiError)}
    assert found == set(CODES)


def test_a_code_comes_with_its_own_status():
    wrong = [(code, status) for code, status in spelled() if status is not None and status not in CODES[code].statuses]
    wrong += [(error.code, error.status) for error in _family(ApiError) if error.status not in CODES[error.code].statuses]
    assert wrong == []


def test_the_document_is_the_table():
    assert (REPOSITORY / "docs" / "errors.md").read_text() == document(), "run `manage.py document_errors`"


def test_the_rule_itself():
    text = (
        'class A(X):\n    status = 409\n    code = "a"\nraise X("t", code="b")\nProblem(400, "c", "t")\n_DRF_CODES = {405: "d"}\n'
        'raise Conflict("t", code="e")\nraise ApiError("t", status=406, code="f")'
    )
    module = Module(REPOSITORY / "x.py", text, ast.parse(text))
    assert set(codes_in(module)) == {("a", 409), ("b", None), ("c", 400), ("d", 405), ("e", 409), ("f", 406)}

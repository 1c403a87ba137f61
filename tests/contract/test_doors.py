"""Objects are found by id in `access.py` alone, for an actor. The rule is an AST check; it is tested like any code."""

import ast
import re
from pathlib import Path

import pytest

from tests.contract.source import Module, product_modules

# `access.py` are the doors; the core's tables and the billing ledger belong to no actor's request.
DOORS = re.compile(r"platform/controlplane/\w+/access(_\w+)?\.py$")
FINDERS = frozenset({"get", "filter", "get_or_none", "aget", "in_bulk", "get_object_or_404"})
ID_KEYWORDS = frozenset({"id", "pk", "id__exact", "pk__exact"})
ENDS = frozenset({"update", "delete", "aupdate", "adelete", "exists"})


def test_only_doors_find_objects_by_id():
    asked = [module for module in product_modules() if module.name.startswith("platform/") and not DOORS.search(module.name)]
    assert [place for module in asked for place in lookups_by_id(module)] == []


def lookups_by_id(module: Module) -> list[str]:
    """Places that read a row by an id: `X.objects.get(id=…)`, `X.objects.filter(pk=…).first()`, `get_object_or_404(X, pk=…)`.

    A guarded write (`X.objects.filter(id=row.id, …).update(…)`) reads nothing and is allowed.
    """
    writes = {
        id(call.func.value) for call in _calls(module.tree) if _method(call) in ENDS and isinstance(call.func, ast.Attribute)
    }
    return [
        f"{module.name}:{call.lineno}"
        for call in _calls(module.tree)
        if _finds(call) and ID_KEYWORDS & {keyword.arg for keyword in call.keywords} and id(call) not in writes
    ]


def _calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _finds(call: ast.Call) -> bool:
    name = _method(call)
    if name == "get_object_or_404":
        return True
    return name in FINDERS and "objects" in ast.dump(call.func)


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        ("Run.objects.get(id=run_id)", True),
        ("Run.objects.select_related('team').get(pk=run_id)", True),
        ("Run.objects.filter(pk=run_id).first()", True),
        ("get_object_or_404(Run, pk=run_id)", True),
        ("Run.objects.filter(team=actor.team)", False),
        ("Run.objects.filter(id=run.id, state='RUNNING').update(state='PAUSED')", False),
        ("mapping.get(id)", False),
    ],
)
def test_the_rule_itself(code: str, refused: bool):
    module = Module(Path(__file__), code, ast.parse(code))
    assert bool(lookups_by_id(module)) is refused

"""R4: random requests to every operation, valid and not, over a socket. No answer is a 5xx, none has a status or a body that the
document does not have.

By a member with real objects in the addresses, by the same member with invented ones, and by nobody.
"""

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import pytest
import requests
import schemathesis
from schemathesis import checks
from schemathesis.core.failures import Failure
from schemathesis.specs.openapi import checks as openapi_checks

from controlplane.core.plain_operations import EVENT_STREAM
from tests.contract.test_openapi import document
from tests.factories.objects import World
from tests.fixtures.gates import Gate

CHECKS = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_schema_conformance,
]
# What a gateway without an engine must say, and schemathesis takes for a fault of the server.
AWAY = 503
MODES = {"real": 4, "invented": 1, "nobody": 1}
"""Who asks, and their share of the examples."""
REQUEST_S = 20
_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass
class Findings:
    trials: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)

    def judge(self, case: Any, response: requests.Response, mode: str) -> None:
        self.trials += 1
        self.statuses[response.status_code] += 1
        wanted = CHECKS[1:] if response.status_code == AWAY else CHECKS
        for check in wanted:
            try:
                case.validate_response(response, checks=[check])
            except* Failure as found:
                # The first of its kind is shown whole.
                fault = found.exceptions[0]
                sent = f"{response.request.method} {response.request.url} {response.request.body!r:.400}"
                shown = f"{mode}: {sent}\n  {response.status_code} {response.text[:600]}\n  {str(fault)[:900]}"
                self.faults.setdefault(f"{case.operation.label} {check.__name__}", shown)


@pytest.mark.gate("R4")
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("broker")
def test_random_requests_meet_neither_an_accident_nor_an_undocumented_answer(live_origin: str, gate: Gate, settings):
    settings.KEY_REQUESTS_PER_MINUTE = settings.TEAM_REQUESTS_PER_MINUTE = settings.VISITOR_REQUESTS_PER_MINUTE = 10**6
    findings, world = Findings(), World()
    for operation in described():
        if operation.method in {"post", "delete"} and _PARAMETER.search(operation.path):
            world = World()  # The last one may have lost what this one needs.
        for mode, share in MODES.items():
            ask(operation, mode, world, live_origin, findings, gate, share * gate.pick(small=1, large=10))
    gate.record(trials=findings.trials, violations=len(findings.faults))
    assert findings.statuses[200] + findings.statuses[201] + findings.statuses[204] > findings.trials / 6, findings.statuses
    assert not findings.faults, "\n\n".join(f"{name}\n  {shown}" for name, shown in findings.faults.items())


def described() -> Iterator[Any]:
    schema = schemathesis.openapi.from_dict(document())
    for found in schema.get_all_operations():
        yield found.ok()


def ask(operation: Any, mode: str, world: World, origin: str, findings: Findings, gate: Gate, examples_count: int) -> None:
    """`examples_count` random requests of one caller."""
    names = _PARAMETER.findall(operation.path) if mode == "real" else []
    fixed = {name: world[name] if name != "model_id" else "tiny" for name in names}
    credential = {} if mode == "nobody" else {"Authorization": f"Bearer {world.member.key}"}
    headers = credential | ({} if mode == "invented" else {"X-Prime-Team-ID": world.member.team_id})
    both = [operation.as_strategy(generation_mode=one, path_parameters=fixed or None) for one in schemathesis.GenerationMode]
    session = requests.Session()

    @hypothesis.seed(gate.seed)
    @hypothesis.settings(
        max_examples=examples_count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=hypothesis.strategies.one_of(both))
    def one(case: Any) -> None:
        if isinstance(case.body, dict):
            case.body.pop("stream", None)  # A stream's events have no shape in the document.
        response = case.call(base_url=origin, session=session, headers=headers, timeout=REQUEST_S, allow_redirects=False)
        if EVENT_STREAM not in response.headers.get("Content-Type", ""):
            findings.judge(case, response, mode)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one()

"""Makes what runs and evaluations need: a pool, a funded team, a checked release; and attempts that hold a lease."""

from itertools import count
from typing import Any

from django.test import Client

from controlplane.billing.gateways import NullGateway
from controlplane.billing.services import top_up
from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.evals import lifecycle as eval_lifecycle
from controlplane.evals.models import Evaluation
from controlplane.evals.request import HostedRequest
from controlplane.evals.services import start_hosted
from controlplane.hub.models import Badge, Environment, Release
from controlplane.pools.models import Pool
from controlplane.pools.services import GrantedAttempt, register_pool
from controlplane.runs import lifecycle
from controlplane.runs.models import Run
from controlplane.runs.services import create_run
from tests.factories.teams import Member, make_member

_numbers = count(1)
MODEL = "tiny"
DIGEST = "ab" * 32


def make_pool(**columns: Any) -> Pool:
    defaults = {
        "base_model": MODEL,
        "trainer_url": "http://127.0.0.1:9/trainer",
        "pool_url": "http://127.0.0.1:9/pool",
        "inference_urls": ["http://127.0.0.1:9/pool"],
        "artifact_root": "/artifacts",
    }
    with acting_as_system():
        return register_pool(name="embedded", **defaults | columns)


def fund(member: Member, usd: int = 10) -> None:
    with acting_for(member.team_id):
        top_up(team_id=member.team_id, amount_microusd=usd * 1_000_000, gateway=NullGateway())


def make_funded_member(slug: str = "") -> Member:
    member = make_member(slug)
    fund(member)
    return member


def make_release(member: Member, name: str = "", *, version: str = "0.1.0", badge: Badge = Badge.GREEN) -> Release:
    """A release as a push and its check leave it, without the artefacts."""
    name = name or f"env-{next(_numbers)}"
    with acting_for(member.team_id):
        team = member.actor.team
        environment, _ = Environment.objects.get_or_create(team=team, normalized_name=name, defaults={"name": name})
        return Release.objects.create(
            team=team,
            environment=environment,
            created_by=member.actor.user,
            version=version,
            content_hash=f"{next(_numbers):064x}",
            module=name.replace("-", "_"),
            wheel_filename=f"{name}-{version}-py3-none-any.whl",
            wheel_sha256=DIGEST,
            wheel_size_bytes=1,
            wheel_key=f"hub/wheels/{DIGEST}.whl",
            source_filename="source.tar.gz",
            source_sha256=DIGEST,
            source_size_bytes=1,
            source_key=f"hub/sources/{DIGEST}.tar.gz",
            badge=badge,
            verdict={"ok": badge == Badge.GREEN, "summary": "import failed", "module": name, "line": 3, "duration_s": 1.0},
        )


def run_body(release: Release, **fields: Any) -> dict[str, Any]:
    return {
        "model": {"name": MODEL},
        "environments": [{"id": release.environment.slug}],
        "batch_size": 64,
        "max_steps": 40,
    } | fields


def make_run(member: Member, **fields: Any) -> Run:
    release = fields.pop("release", None) or make_release(member)
    with acting_for(member.team_id):
        return create_run(actor=member.actor, body=run_body(release, **fields))


def lease_run(pool: Pool) -> GrantedAttempt:
    """The next queued run of the pool, leased."""
    with acting_as_system():
        granted = lifecycle.lease_next_run(pool.id)
    assert granted is not None, "no run was waiting"
    return granted


def make_evaluation(member: Member, *, model: str = MODEL, **options: Any) -> Evaluation:
    release = make_release(member)
    request = HostedRequest.model_validate(
        {"environment_ids": [release.environment.slug], "inference_model": model, "eval_config": options}
    )
    with acting_for(member.team_id):
        return start_hosted(actor=member.actor, request=request)[0]


def lease_evaluation(pool: Pool) -> GrantedAttempt:
    with acting_as_system():
        granted = eval_lifecycle.lease_next_evaluation(pool.id)
    assert granted is not None, "no evaluation was waiting"
    return granted


def fresh(row: Any) -> Any:
    """The row as it stands now, whosever it is."""
    with acting_as_system():
        return type(row).objects.get(pk=row.pk)


def holder_client(token: str) -> Client:
    """Speaks the internal API as the holder of a lease. For tests that are marked with the internal urlconf."""
    return Client(headers={"Authorization": f"Bearer {token}"}, raise_request_exception=False)

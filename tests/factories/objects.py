"""Objects of one team by the name of the path parameter that addresses them: what the tenancy matrix fills addresses with.

A new path parameter needs a factory here, and an operation that takes a body a valid one, or the matrix fails.
"""

from collections.abc import Callable
from typing import Any

from controlplane.core.tenancy import acting_for
from controlplane.hub import access as hub_access
from controlplane.hub import collaborators
from controlplane.hub import services as hub_services
from controlplane.hub.schemas import DeclareSource, DeclareUpload
from controlplane.runs.models import Run
from controlplane.runs.services import stop_run
from controlplane.secrets import access as secrets_access
from controlplane.secrets import services as secrets_services
from controlplane.secrets.schemas import SecretIn, ValueIn
from controlplane.teams import access, services
from controlplane.webhooks.models import TEST_EVENT, Delivery, DeliveryState, Webhook
from controlplane.webhooks.publishing import new_event_id
from tests.factories.adapters import make_adapter, make_checkpoint, make_export
from tests.factories.datasets import make_dataset
from tests.factories.packages import Package, build_package
from tests.factories.releases import make_release
from tests.factories.reports import make_rollout
from tests.factories.runs import fund, make_evaluation, make_pool, make_run
from tests.factories.teams import Member, make_member, make_shared_team
from tests.factories.webhooks import make_webhook

Factory = Callable[["World"], str]
BodyFactory = Callable[["World"], dict[str, Any]]
OBJECTS: dict[str, Factory] = {}
BODIES: dict[str, BodyFactory] = {}


class World:
    """What one member's team owns, made when it is first asked for. `world["run_id"]` is the same run every time."""

    def __init__(self, member: Member | None = None) -> None:
        self.member = member or make_member()
        self._made: dict[str, str] = {}

    def __getitem__(self, parameter: str) -> str:
        if parameter not in self._made:
            assert parameter in OBJECTS, (
                f"no factory for the path parameter {{{parameter}}}: add one to tests/factories/objects.py"
            )
            with acting_for(self.member.team_id):
                self._made[parameter] = OBJECTS[parameter](self)
        return self._made[parameter]

    def remember(self, **values: str) -> None:
        """One factory may make several addresses at once (owner, name and version of a release)."""
        self._made |= values


def owns(parameter: str) -> Callable[[Factory], Factory]:
    """Registers the factory of one path parameter."""

    def register(factory: Factory) -> Factory:
        OBJECTS[parameter] = factory
        return factory

    return register


def sends(operation_id: str) -> Callable[[BodyFactory], BodyFactory]:
    """Registers a valid body of one operation."""

    def register(factory: BodyFactory) -> BodyFactory:
        BODIES[operation_id] = factory
        return factory

    return register


@owns("key_id")
def key_id(world: World) -> str:
    key, _ = services.create_key(access.actor_for(world.member.actor.user), name="matrix")
    return key.id


@owns("team_id")
def team_id(world: World) -> str:
    return make_shared_team(world.member)[0].team_id


@owns("user_id")
def user_id(world: World) -> str:
    """A second member of the world's shared team."""
    user = make_member().actor.user
    admin = access.actor_for(world.member.actor.user, team_id=world["team_id"])
    services.add_member(admin, email=user.email)
    return user.id


@sends("team_members_add")
def new_member(world: World) -> dict[str, Any]:
    return {"email": make_member().actor.user.email}


@owns("environment_id")
def environment_id(world: World) -> str:
    release = make_release(world.member)
    environment = release.environment
    world.remember(owner=environment.team.slug, name=environment.name, version=release.version)
    return environment.id


def _place(world: World) -> secrets_access.Place:
    return secrets_access.place_of(world.member.actor, world["environment_id"])


@owns("secret_id")
def secret_id(world: World) -> str:
    """A secret of the team that is linked to the world's environment."""
    secret = secrets_services.create_secret(world.member.actor, SecretIn(name="TEAM_TOKEN", value="a-value-of-the-team"))
    secrets_services.link_secret(_place(world), secret.id)
    return secret.id


@owns("environment_secret_id")
def environment_secret_id(world: World) -> str:
    body = ValueIn(name="OWN_TOKEN", value="a-value-of-the-environment")
    return secrets_services.create_setting(_place(world), body, is_secret=True).id


@owns("variable_id")
def variable_id(world: World) -> str:
    return secrets_services.create_setting(_place(world), ValueIn(name="LEVEL", value="hard"), is_secret=False).id


@sends("secrets_create")
@sends("environments_secrets_create")
@sends("environments_variables_create")
def new_value(world: World) -> dict[str, Any]:
    return {"name": "ANOTHER", "value": "a-value-of-its-own"}


@sends("secrets_update")
@sends("environments_secrets_update")
@sends("environments_variables_update")
def changed_value(world: World) -> dict[str, Any]:
    return {"value": "another-value"}


def _part_of(parameter: str, part: str) -> Factory:
    """Of what the factory of another parameter makes along with it."""

    def factory(world: World) -> str:
        world[parameter]
        return world[part]

    return factory


for _part in ("owner", "name", "version"):
    OBJECTS[_part] = _part_of("environment_id", _part)


@owns("collaborator")
def collaborator(world: World) -> str:
    """A user who was invited to the world's environment."""
    name = make_member().slug
    environment = hub_access.owned_environment(world.member.actor, world["environment_id"])
    collaborators.invite(world.member.actor, environment, name)
    return name


@sends("environments_collaborators_invite")
def invitation(world: World) -> dict[str, Any]:
    return {"user": make_member().slug}


@sends("environments_fork")
def fork_of_own(world: World) -> dict[str, Any]:
    """The world's environment for another team of the same member."""
    return {"team_slug": make_shared_team(world.member)[0].slug}


def _next_package() -> Package:
    return build_package(version="0.2.0", content="x = 2\n")


def _declared(world: World, body: DeclareUpload) -> str:
    environment = hub_access.owned_environment(world.member.actor, world["environment_id"])
    return hub_services.declare_upload(world.member.actor, environment, body)[0].id


@owns("dataset_id")
def dataset_id(world: World) -> str:
    return make_dataset(world.member).id


@sends("datasets_create")
def dataset_declaration(world: World) -> dict[str, Any]:
    return {"name": "sums", "sha256": "0" * 64, "size_bytes": 10}


@owns("wheel_id")
def wheel_id(world: World) -> str:
    return _declared(world, DeclareUpload.model_validate(_next_package().wheel_declaration()))


@owns("version_id")
def version_id(world: World) -> str:
    return _declared(world, DeclareSource.model_validate(_next_package().source_declaration()))


@sends("environments_wheels_create")
def wheel_declaration(world: World) -> dict[str, Any]:
    return _next_package().wheel_declaration()


@sends("environments_versions_create")
def source_declaration(world: World) -> dict[str, Any]:
    return _next_package().source_declaration()


def _funded(world: World) -> Member:
    """The world's member, with a pool to run on and money to spend."""
    make_pool()
    fund(world.member)
    return world.member


@owns("run_id")
def run_id(world: World) -> str:
    """A run that has ended, which every verb but `delete` accepts or answers with a conflict."""
    run = make_run(_funded(world))
    return stop_run(actor=world.member.actor, run_id=run.id).id


@owns("rollout_id")
def rollout_id(world: World) -> str:
    """A rollout of the world's run, with the tokens that its body holds."""
    return make_rollout(Run.objects.get(id=world["run_id"])).pk


@owns("evaluation_id")
def evaluation_id(world: World) -> str:
    return make_evaluation(_funded(world)).id


@sends("evaluations_samples_create")
def samples(world: World) -> dict[str, Any]:
    return {"samples": []}


@owns("adapter_id")
def adapter_id(world: World) -> str:
    return make_adapter(_funded(world)).id


@owns("export_id")
def export_id(world: World) -> str:
    """One that is ready, with a file to download."""
    export = make_export(make_adapter(_funded(world)))
    world.remember(filename=export.files[0]["name"])
    return export.pk


OBJECTS["filename"] = _part_of("export_id", "filename")


@owns("checkpoint_id")
def checkpoint_id(world: World) -> str:
    return make_checkpoint(_funded(world)).id


@sends("adapters_exports_create")
def export_request(world: World) -> dict[str, Any]:
    return {"form": "adapter"}


@sends("checkpoints_fork")
def fork_request(world: World) -> dict[str, Any]:
    return {"name": "a-fork"}


@sends("external_runs_status_set")
def external_status(world: World) -> dict[str, Any]:
    return {"status": "completed"}


@sends("billing_top_ups_create")
def top_up(world: World) -> dict[str, Any]:
    return {"amount_usd": 1}


@sends("chat_completions")
def chat_request(world: World) -> dict[str, Any]:
    return {"model": "tiny", "messages": [{"role": "user", "content": "3+4?"}]}


@owns("webhook_id")
def webhook_id(world: World) -> str:
    return make_webhook(world.member)[0].id


@owns("delivery_id")
def delivery_id(world: World) -> str:
    """An event that was sent to the world's webhook, which is made again where an operation has deleted it."""
    if not Webhook.objects.filter(id=world["webhook_id"]).exists():
        world.remember(webhook_id=make_webhook(world.member)[0].id)
    sent = {"webhook_id": world["webhook_id"], "event_id": new_event_id(), "state": DeliveryState.DELIVERED}
    return Delivery.objects.create(team=world.member.actor.team, event_type=TEST_EVENT, body="{}", **sent).id


@sends("webhooks_create")
def new_webhook(world: World) -> dict[str, Any]:
    return {"url": "https://hooks.example.com/another", "event_types": ["run.completed"]}


@sends("webhooks_update")
def changed_webhook(world: World) -> dict[str, Any]:
    return {"description": "alarm"}

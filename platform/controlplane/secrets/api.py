"""HTTP of secrets and variables: parse, door, service, render. No rule lives here."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.pagination import OffsetQuery, offset_page
from controlplane.core.schemas import query_parameters, read_body, read_query, render
from controlplane.core.tenancy import acting_for
from controlplane.core.views import ApiView
from controlplane.secrets import access, services
from controlplane.secrets.schemas import (
    Changes,
    EnvironmentSecret,
    EnvironmentSecretAnswer,
    EnvironmentSecrets,
    LinkAnswer,
    LinkOut,
    SecretAnswer,
    SecretIn,
    SecretOut,
    SecretPage,
    ValueIn,
    Variable,
    VariableAnswer,
    Variables,
)
from controlplane.teams.actors import actor_in


class SecretsView(ApiView):
    scope = "secrets"

    @extend_schema(operation_id="secrets_list", parameters=query_parameters(OffsetQuery), responses=SecretPage)
    def get(self, request: Request) -> Response:
        """The team's secrets by name, without their values."""
        rows, query = access.secrets_of(actor_in(request)).order_by("name"), read_query(request, OffsetQuery)
        return Response(offset_page(rows, query, lambda row: SecretOut.of(row).model_dump(mode="json")))

    @extend_schema(operation_id="secrets_create", request=SecretIn, responses=SecretAnswer)
    def post(self, request: Request) -> Response:
        """Keep a secret of the team. Its value is never told again."""
        return render(SecretAnswer(data=SecretOut.of(services.create_secret(actor_in(request), read_body(request, SecretIn)))))


class SecretView(ApiView):
    scope = "secrets"

    @extend_schema(operation_id="secrets_get", responses=SecretAnswer)
    def get(self, request: Request, secret_id: str) -> Response:
        """One secret of the team, without its value."""
        return render(SecretAnswer(data=SecretOut.of(access.secret_of(actor_in(request), secret_id))))

    @extend_schema(operation_id="secrets_update", request=Changes, responses=SecretAnswer)
    def patch(self, request: Request, secret_id: str) -> Response:
        """Change a secret wherever it is linked, from the next sandbox on."""
        secret = access.secret_of(actor_in(request), secret_id)
        changed = services.update_secret(actor_in(request), secret, read_body(request, Changes))
        return render(SecretAnswer(data=SecretOut.of(changed)))

    @extend_schema(operation_id="secrets_delete", responses={204: None})
    def delete(self, request: Request, secret_id: str) -> Response:
        """Delete a secret and its links."""
        services.delete_secret(actor_in(request), access.secret_of(actor_in(request), secret_id))
        return Response(status=204)


class EnvironmentSecretsView(ApiView):
    scope = "secrets"

    @extend_schema(operation_id="environments_secrets_list", responses=EnvironmentSecrets)
    def get(self, request: Request, environment_id: str) -> Response:
        """Secrets that the team's work on an environment gets: the environment's own, then the team's that are linked."""
        place = access.place_of(actor_in(request), environment_id)
        with acting_for(place.actor.team_id):
            own = [EnvironmentSecret.of(row) for row in access.settings_of(place, is_secret=True)]
            linked = [EnvironmentSecret.of(link.secret) for link in access.links_of(place)]
        return render(EnvironmentSecrets(data=[*own, *linked]))

    @extend_schema(operation_id="environments_secrets_create", request=ValueIn, responses=EnvironmentSecretAnswer)
    def post(self, request: Request, environment_id: str) -> Response:
        """Keep a secret for the team's work on one environment."""
        place = access.place_of(actor_in(request), environment_id)
        made = services.create_setting(place, read_body(request, ValueIn), is_secret=True)
        return render(EnvironmentSecretAnswer(data=EnvironmentSecret.of(made)))


class EnvironmentSecretView(ApiView):
    scope = "secrets"

    @extend_schema(operation_id="environments_secrets_update", request=Changes, responses=EnvironmentSecretAnswer)
    def patch(self, request: Request, environment_id: str, environment_secret_id: str) -> Response:
        """Change an environment's secret, from the next sandbox on."""
        place = access.place_of(actor_in(request), environment_id)
        setting = access.setting_of(place, environment_secret_id, is_secret=True)
        changed = services.update_setting(place, setting, read_body(request, Changes))
        return render(EnvironmentSecretAnswer(data=EnvironmentSecret.of(changed)))

    @extend_schema(operation_id="environments_secrets_delete", responses={204: None})
    def delete(self, request: Request, environment_id: str, environment_secret_id: str) -> Response:
        """Delete an environment's secret."""
        place = access.place_of(actor_in(request), environment_id)
        services.delete_setting(place, access.setting_of(place, environment_secret_id, is_secret=True))
        return Response(status=204)


class EnvironmentLinkView(ApiView):
    scope = "secrets"

    @extend_schema(operation_id="environments_secrets_link", request=None, responses=LinkAnswer)
    def post(self, request: Request, environment_id: str, secret_id: str) -> Response:
        """Give the team's work on an environment one of the team's secrets."""
        place = access.place_of(actor_in(request), environment_id)
        return render(LinkAnswer(data=LinkOut.of(services.link_secret(place, secret_id))))

    @extend_schema(operation_id="environments_secrets_unlink", responses={204: None})
    def delete(self, request: Request, environment_id: str, secret_id: str) -> Response:
        """Take the team's secret from the environment again."""
        place = access.place_of(actor_in(request), environment_id)
        services.unlink_secret(place, access.link_of(place, secret_id))
        return Response(status=204)


class VariablesView(ApiView):
    scope = "secrets"

    @extend_schema(operation_id="environments_variables_list", responses=Variables)
    def get(self, request: Request, environment_id: str) -> Response:
        """Variables that the team's work on an environment gets, with their values."""
        place = access.place_of(actor_in(request), environment_id)
        with acting_for(place.actor.team_id):
            rows = list(access.settings_of(place, is_secret=False))
        return render(Variables(data=[Variable.of(row) for row in rows]))

    @extend_schema(operation_id="environments_variables_create", request=ValueIn, responses=VariableAnswer)
    def post(self, request: Request, environment_id: str) -> Response:
        """Set a variable for the team's work on one environment."""
        place = access.place_of(actor_in(request), environment_id)
        made = services.create_setting(place, read_body(request, ValueIn), is_secret=False)
        return render(VariableAnswer(data=Variable.of(made)))


class VariableView(ApiView):
    scope = "secrets"

    @extend_schema(operation_id="environments_variables_update", request=Changes, responses=VariableAnswer)
    def patch(self, request: Request, environment_id: str, variable_id: str) -> Response:
        """Change a variable, from the next sandbox on."""
        place = access.place_of(actor_in(request), environment_id)
        setting = access.setting_of(place, variable_id, is_secret=False)
        return render(VariableAnswer(data=Variable.of(services.update_setting(place, setting, read_body(request, Changes)))))

    @extend_schema(operation_id="environments_variables_delete", responses={204: None})
    def delete(self, request: Request, environment_id: str, variable_id: str) -> Response:
        """Delete a variable."""
        place = access.place_of(actor_in(request), environment_id)
        services.delete_setting(place, access.setting_of(place, variable_id, is_secret=False))
        return Response(status=204)

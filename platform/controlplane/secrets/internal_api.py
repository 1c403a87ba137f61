"""What a holder's sandboxes get: `GET /internal/v1/releases/{release_id}/values`, asked for before each start."""

from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.errors import NotFound
from controlplane.hub.access import release_by_id
from controlplane.pools.internal_api import AttemptView
from controlplane.pools.services import proven
from controlplane.secrets.services import hand_out


class SandboxValuesView(AttemptView):
    """The values are those of the team whose work is leased, whoever owns the environment."""

    def get(self, request: Request, release_id: str) -> Response:
        with proven(request.auth) as held:
            if release_id not in held.subject.release_ids(held.row):
                raise NotFound("the attempt has no such release")
            environment_id = release_by_id(release_id).environment_id
            is_check = held.lease.subject_kind == "release"
            values = hand_out(held.lease.team_id, environment_id, is_check=is_check)
        return Response(values.model_dump(mode="json"))

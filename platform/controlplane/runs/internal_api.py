"""What the holder of a run may read of other runs: `GET /internal/v1/replays/{environment}/{step}`."""

from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.errors import NotFound
from controlplane.pools.internal_api import AttemptView
from controlplane.pools.services import proven
from controlplane.runs import replays


class ReplayView(AttemptView):
    def get(self, request: Request, environment: int, step: int) -> Response:
        with proven(request.auth) as held:
            if held.lease.subject_kind != "run":
                raise NotFound("only a run replays another")
            recorded = replays.recorded_step(held.row, environment, step)
        # The object store is a network service: it is read once the transaction is over.
        return Response({"rollouts": replays.rollouts_of(recorded)})

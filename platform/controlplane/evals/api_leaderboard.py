"""HTTP face of the leaderboard of an environment."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.schemas import render
from controlplane.core.views import ApiView
from controlplane.evals.leaderboard import leaderboard
from controlplane.evals.schemas import Leaderboard
from controlplane.hub.access import environment_by_name


class LeaderboardView(ApiView):
    scope = "evals"
    open_to_visitors = True

    @extend_schema(operation_id="environments_leaderboard", responses=Leaderboard)
    def get(self, request: Request, owner: str, name: str) -> Response:
        """The models that were evaluated on an environment, the best first: by the caller's team, or published by others."""
        actor = request.user
        return render(Leaderboard(data=leaderboard(actor, environment_by_name(actor, owner, name))))

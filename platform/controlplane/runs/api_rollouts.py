"""HTTP face of going through rollouts: the groups of a step, one rollout, its tokens. No rule lives here."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.schemas import query_parameters, read_query, render
from controlplane.core.views import ApiView
from controlplane.runs import rollout_reads
from controlplane.runs.access import access_rollout, access_run
from controlplane.runs.schemas_rollouts import GroupsAnswer, GroupsQuery, RolloutAnswer, TokensAnswer, TokensQuery


class GroupsView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_groups_list", parameters=query_parameters(GroupsQuery), responses=GroupsAnswer)
    def get(self, request: Request, run_id: str) -> Response:
        """The rollouts of one step by the task that they were compared on, without their bodies."""
        run, query = access_run(request.user, run_id), read_query(request, GroupsQuery)
        found = rollout_reads.step_rollouts(run, step=query.step, tag=query.tag, offset=query.offset, limit=query.limit)
        return render(GroupsAnswer.of(query, found))


class RolloutView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_rollouts_get", responses=RolloutAnswer)
    def get(self, request: Request, run_id: str, rollout_id: str) -> Response:
        """One rollout: messages, rewards, errors, and each model call with the version that answered. Tokens are apart."""
        run = access_run(request.user, run_id)
        row = access_rollout(run, rollout_id)
        return render(RolloutAnswer.of(row, rollout_reads.rollout_record(run, row)))


class TokensView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_rollouts_tokens_get", parameters=query_parameters(TokensQuery), responses=TokensAnswer)
    def get(self, request: Request, run_id: str, rollout_id: str) -> Response:
        """A window of one token stream of a rollout: ids, text, training mask, log-probabilities."""
        run, query = access_run(request.user, run_id), read_query(request, TokensQuery)
        record = rollout_reads.rollout_record(run, access_rollout(run, rollout_id))
        stream, is_trained = rollout_reads.stream_at(record, trace=query.trace, branch=query.branch)
        return render(TokensAnswer.of(query, record, stream, is_trained=is_trained))

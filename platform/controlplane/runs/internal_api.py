"""What the holder of a run may read beyond its orders: `GET /internal/v1/replays/{environment}/{step}` of other runs, and
`GET /internal/v1/datasets/{index}`, the files that it learns from."""

from django.http import StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.errors import NotFound
from controlplane.core.objects import store
from controlplane.core.objects.sending import attachment
from controlplane.pools.internal_api import AttemptView
from controlplane.pools.services import proven
from controlplane.runs import datasets, replays


class ReplayView(AttemptView):
    def get(self, request: Request, environment: int, step: int) -> Response:
        with proven(request.auth) as held:
            if held.lease.subject_kind != "run":
                raise NotFound("only a run replays another")
            recorded = replays.recorded_step(held.row, environment, step)
        # The object store is a network service: it is read once the transaction is over.
        return Response({"rollouts": replays.rollouts_of(recorded)})


class DatasetFileView(AttemptView):
    def get(self, request: Request, index: int) -> StreamingHttpResponse:
        with proven(request.auth) as held:
            if held.lease.subject_kind != "run":
                raise NotFound("only a run learns from datasets")
            dataset = datasets.dataset_of_run(held.row, index)
        return attachment(store().open(dataset.object_key), filename=f"{dataset.name}.jsonl", size_bytes=dataset.size_bytes)

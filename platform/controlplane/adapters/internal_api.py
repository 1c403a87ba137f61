"""What the holder of an export sends: `PUT /internal/v1/exports/{name}/{part}`, the files piece by piece."""

from pydantic import TypeAdapter
from rest_framework.parsers import FileUploadParser
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.exports import expect_part
from controlplane.core.errors import NotFound
from controlplane.core.objects import store
from controlplane.core.schemas import Query, read_query
from controlplane.pools.internal_api import AttemptView
from controlplane.pools.services import proven
from trainer.contracts.adapters import FileEntry
from trainer.contracts.base import Sha256
from trainer.contracts.exports import FileName

_NAME: TypeAdapter[str] = TypeAdapter(FileName)


class WholeFile(Query):
    sha256: Sha256
    size_bytes: int


class ExportPartView(AttemptView):
    parser_classes = [FileUploadParser]

    def put(self, request: Request, name: str, part: int) -> Response:
        entry = FileEntry(**read_query(request, WholeFile).model_dump())
        with proven(request.auth) as held:
            if held.lease.subject_kind != "export":
                raise NotFound("only an export sends files")
            key = expect_part(held.row, _NAME.validate_python(name), entry, part)
        # The object store is a network service: it is written once the transaction is over.
        store().put(key, request.body)
        return Response(status=204)

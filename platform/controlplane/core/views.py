"""The base of every view of the API. A module of its own: DRF imports the permission class while it defines `APIView`."""

from rest_framework.views import APIView

from controlplane.core.declarations import Declarations


class ApiView(Declarations, APIView):
    """A view declares its scope (`Declarations`) and has one method per operation: parse, door, service, render."""

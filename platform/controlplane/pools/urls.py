"""Routes of the app, below `/api/v1` (see `controlplane.urls`)."""

from controlplane.core.routes import endpoint
from controlplane.pools import api

urlpatterns = [*endpoint("installation", api.InstallationView)]

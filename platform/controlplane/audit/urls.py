"""Routes of the audit log, below `/api/v1`."""

from django.urls import URLPattern

from controlplane.audit import api
from controlplane.core.routes import endpoint

urlpatterns: list[URLPattern] = [*endpoint("audit-events", api.AuditEventsView)]

"""Routes of the hub, below `/api/v1`. An id and `owner/name` share their place: no environment has a name that stands here."""

from django.urls import URLPattern

from controlplane.core.routes import endpoint
from controlplane.hub import api, api_sharing

ENVIRONMENT = "environmentshub/<str:owner>/<str:name>"
RELEASE = f"{ENVIRONMENT}/@<str:version>"

urlpatterns: list[URLPattern] = [
    *endpoint("environmentshub", api.EnvironmentsView),
    *endpoint("environmentshub/resolve", api.ResolveView),
    *endpoint("environmentshub/lookup", api.LookupView),
    *endpoint("environmentshub/<str:environment_id>/wheels", api.WheelsView),
    *endpoint("environmentshub/<str:environment_id>/wheels/<str:wheel_id>/finalize", api.FinalizeWheelView),
    *endpoint("environmentshub/<str:environment_id>/versions", api.VersionsView),
    *endpoint("environmentshub/<str:environment_id>/versions/<str:version_id>/finalize", api.FinalizeVersionView),
    *endpoint("environmentshub/<str:environment_id>", api.EnvironmentView),
    *endpoint(ENVIRONMENT, api.EnvironmentByNameView),
    *endpoint(f"{ENVIRONMENT}/status", api.StatusView),
    *endpoint(f"{ENVIRONMENT}/versions", api.VersionListView),
    *endpoint(f"{ENVIRONMENT}/related", api_sharing.RelatedView),
    *endpoint(f"{ENVIRONMENT}/star", api_sharing.StarView),
    *endpoint(f"{ENVIRONMENT}/fork", api_sharing.ForkView),
    *endpoint(f"{ENVIRONMENT}/collaborators", api_sharing.CollaboratorsView),
    *endpoint(f"{ENVIRONMENT}/collaborators/<str:collaborator>", api_sharing.CollaboratorView),
    *endpoint(RELEASE, api.ReleaseView),
    *endpoint(f"{RELEASE}/inspect", api.InspectView),
    *endpoint(f"{RELEASE}/source", api.SourceView),
    *endpoint(f"{RELEASE}/readme", api.ReadmeView),
    *endpoint(f"{RELEASE}/badge", api.BadgeView),
    *endpoint(f"{RELEASE}/check", api.CheckView),
    *endpoint(f"{RELEASE}/log", api.LogView),
]

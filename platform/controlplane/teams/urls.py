"""Routes of accounts, teams and keys, below `/api/v1`."""

from django.urls import URLPattern

from controlplane.core.routes import endpoint
from controlplane.teams import api, api_auth

urlpatterns: list[URLPattern] = [
    *endpoint("auth/sign-up", api_auth.SignUpView),
    *endpoint("auth/sign-in", api_auth.SignInView),
    *endpoint("auth/sign-out", api_auth.SignOutView),
    *endpoint("auth/session", api_auth.SessionView),
    *endpoint("auth_challenge/generate", api_auth.ChallengeView),
    *endpoint("auth_challenge/status", api_auth.ChallengeStatusView),
    *endpoint("auth_challenge/approve", api_auth.ChallengeApproveView),
    *endpoint("user/whoami", api.WhoAmIView),
    *endpoint("user/slug", api.SlugView),
    *endpoint("user/teams", api.MyTeamsView),
    *endpoint("teams", api.TeamsView),
    *endpoint("teams/<str:team_id>/members", api.MembersView),
    *endpoint("teams/<str:team_id>/members/<str:user_id>", api.MemberView),
    *endpoint("keys", api.KeysView),
    *endpoint("keys/<str:key_id>", api.KeyView),
]

"""HTTP face of accounts: sign up, sign in, the session, and `prime login`. No rule lives here."""

from django.http import HttpRequest
from django.middleware.csrf import get_token
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.declarations import PUBLIC
from controlplane.core.schemas import query_parameters, read_body, read_query, render
from controlplane.core.throttling import Limit, address_of, network_of, take
from controlplane.core.views import ApiView
from controlplane.teams import access, logins, services
from controlplane.teams.actors import actor_in
from controlplane.teams.authentication import bearer_text, check_csrf
from controlplane.teams.models import User
from controlplane.teams.schemas import (
    ChallengeApproval,
    ChallengeIn,
    ChallengeOut,
    ChallengeQuery,
    ChallengeResult,
    SessionOut,
    SignIn,
    SignUp,
    TeamOut,
    UserOut,
)
from controlplane.teams.sessions import begin_session, end_session, session_user

SIGN_UPS = Limit("sign-up", burst=120, window_s=3600)
SIGN_UPS_OF_ONE = Limit("sign-up-of", burst=10, window_s=600)
SIGN_INS = Limit("sign-in", burst=120, window_s=600)
SIGN_INS_OF_ONE = Limit("sign-in-of", burst=10, window_s=600)
LOGINS = Limit("login", burst=60, window_s=600)


class PublicView(ApiView):
    """Open to callers who are nobody yet. Bodies are JSON, which no page of another site can send without being allowed."""

    scope = PUBLIC
    authentication_classes = ()


class SignUpView(PublicView):
    @extend_schema(operation_id="auth_sign_up", request=SignUp, responses={201: SessionOut})
    def post(self, request: Request) -> Response:
        """Make a user with a personal team and sign in."""
        body = read_body(request, SignUp)
        take([(SIGN_UPS, peer_of(request)), (SIGN_UPS_OF_ONE, body.email.lower())])
        user = services.sign_up(email=body.email, password=body.password, name=body.name, slug=body.slug)
        key_text = services.create_key(access.actor_for(user), name=body.key_name)[1] if body.key_name else None
        begin_session(request._request, user)
        return render(session_out(request._request, user, key_text), status=201)


class SignInView(PublicView):
    @extend_schema(operation_id="auth_sign_in", request=SignIn, responses=SessionOut)
    def post(self, request: Request) -> Response:
        """Begin a session of the dashboard."""
        body = read_body(request, SignIn)
        take([(SIGN_INS, peer_of(request)), (SIGN_INS_OF_ONE, body.email.lower())])
        user = services.verify_password(email=body.email, password=body.password)
        begin_session(request._request, user)
        return render(session_out(request._request, user))


class SignOutView(PublicView):
    @extend_schema(operation_id="auth_sign_out", request=None, responses={204: None})
    def post(self, request: Request) -> Response:
        """End the session. Repeatable."""
        if session_user(request._request) is not None:
            check_csrf(request._request)
            end_session(request._request)
        return Response(status=204)


class SessionView(PublicView):
    @extend_schema(operation_id="auth_session", responses=SessionOut)
    def get(self, request: Request) -> Response:
        """Who is signed in, in which teams, and the CSRF token."""
        return render(session_out(request._request, session_user(request._request)))


class ChallengeView(PublicView):
    @extend_schema(operation_id="auth_challenge_generate", request=ChallengeIn, responses=ChallengeOut)
    def post(self, request: Request) -> Response:
        """Begin `prime login`: a code for the person and a token for the terminal."""
        LOGINS.take(peer_of(request))
        body = read_body(request, ChallengeIn)
        challenge, token = logins.begin_login(public_key_pem=body.encryption_public_key, limits=body.limits or {})
        return render(ChallengeOut(challenge=challenge.code, status_auth_token=token))


class ChallengeStatusView(PublicView):
    @extend_schema(operation_id="auth_challenge_status", parameters=query_parameters(ChallengeQuery), responses=ChallengeResult)
    def get(self, request: Request) -> Response:
        """The encrypted key, once, with the terminal's token as bearer."""
        query = read_query(request, ChallengeQuery)
        return render(ChallengeResult(result=logins.fetch_login(query.challenge, bearer_text(request._request))))


class ChallengeApproveView(ApiView):
    scope = "keys"

    @extend_schema(operation_id="auth_challenge_approve", request=ChallengeApproval, responses={204: None})
    def post(self, request: Request) -> Response:
        """Give the terminal that shows this code a key of the signed-in user."""
        logins.approve_login(actor_in(request), read_body(request, ChallengeApproval).challenge)
        return Response(status=204)


def session_out(request: HttpRequest, user: User | None, key_text: str | None = None) -> SessionOut:
    teams = [TeamOut.of(one.team, one.role) for one in access.memberships_of(user)] if user else []
    return SessionOut(user=UserOut.of(user) if user else None, teams=teams, csrf_token=get_token(request), api_key=key_text)


def peer_of(request: Request) -> str:
    return network_of(address_of(request.META))

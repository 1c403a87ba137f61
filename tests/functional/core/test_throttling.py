"""A limit counts tries, whatever process they come through; the API's own limits tell a caller where it stands."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection

from controlplane.core import throttling
from controlplane.core.errors import RateLimited
from controlplane.core.models import RateBucket
from controlplane.core.throttling import Limit, network_of, take
from controlplane.teams import api_auth
from tests.factories.teams import ApiClient, Member, client_for, make_member, make_shared_team

pytestmark = pytest.mark.django_db
LIMIT = Limit("test", burst=2, window_s=60)


def exhaust(who: str, limit: Limit = LIMIT) -> RateLimited:
    for _ in range(limit.burst):
        limit.take(who)
    with pytest.raises(RateLimited) as refused:
        limit.take(who)
    return refused.value


def test_tries_above_the_burst_are_refused_and_tokens_come_back_evenly(shift_clock):
    assert 0 < exhaust("ada").retry_after_s <= 30
    shift_clock(timedelta(seconds=31))
    LIMIT.take("ada")
    with pytest.raises(RateLimited):
        LIMIT.take("ada")
    shift_clock(timedelta(hours=1))
    exhaust("ada")


def test_a_refused_try_costs_no_token(shift_clock):
    exhaust("ada")
    for _ in range(5):
        with pytest.raises(RateLimited):
            LIMIT.take("ada")
    shift_clock(timedelta(seconds=31))
    assert LIMIT.take("ada").is_granted


def test_everybody_has_their_own_count():
    assert exhaust("ada").retry_after_s > 0
    assert LIMIT.take("bob").tokens == LIMIT.burst - 1


def test_the_tightest_of_several_limits_decides():
    wide, narrow = Limit("wide", burst=100, window_s=60), Limit("narrow", burst=1, window_s=60)
    assert take([(wide, "ada"), (narrow, "ada")]).burst == 1
    with pytest.raises(RateLimited) as refused:
        take([(wide, "ada"), (narrow, "ada")])
    assert refused.value.headers["RateLimit-Limit"] == "1"


def test_a_limit_that_was_changed_holds_at_once():
    exhaust("ada")
    assert Limit("test", burst=2, window_s=1).take("bob").burst == 2
    assert Limit("test", burst=50, window_s=60).take("bob").burst == 50


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("2001:db8::1", "2001:db8::2", True), ("2001:db8::1", "2001:db8:0:1::1", False), ("10.0.0.1", "10.0.0.2", False)],
)
def test_a_network_of_ipv6_is_one_caller(one: str, other: str, same: bool):
    assert (network_of(one) == network_of(other)) is same


def test_the_buckets_cost_no_log():
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = 'core_ratebucket'")
        assert cursor.fetchone() == ("u",)


def test_old_buckets_are_swept(shift_clock):
    LIMIT.take("ada")
    assert throttling.sweep() == 0
    shift_clock(timedelta(days=2))
    assert throttling.sweep() == 1 and not RateBucket.objects.exists()


def whoami(member: Member | None = None):
    return client_for(member).get("/api/v1/user/whoami")


def test_an_answer_says_how_much_is_left(settings):
    settings.KEY_REQUESTS_PER_MINUTE = 5
    member = make_member()
    first, second = whoami(member), whoami(member)
    assert (first["RateLimit-Remaining"], second["RateLimit-Remaining"]) == ("4", "3")
    assert second["RateLimit-Limit"] == "5" and 0 < int(second["RateLimit-Reset"]) <= 24


def test_a_key_over_its_limit_is_429_and_another_key_of_the_team_is_not(settings, shift_clock):
    settings.KEY_REQUESTS_PER_MINUTE = 2
    member, other = make_shared_team(make_member(), make_member())
    assert [whoami(member).status_code for _ in range(3)] == [200, 200, 429]
    refused = whoami(member)
    assert refused.json()["code"] == "rate_limited" and 0 < int(refused["Retry-After"]) <= 30
    assert refused["RateLimit-Remaining"] == "0" and whoami(other).status_code == 200
    shift_clock(timedelta(seconds=31))
    assert whoami(member).status_code == 200


def test_a_team_has_one_limit_over_all_its_keys(settings):
    settings.TEAM_REQUESTS_PER_MINUTE = 2
    member, other = make_shared_team(make_member(), make_member())
    assert [whoami(one).status_code for one in (member, other, member, other)] == [200, 200, 429, 429]


def test_visitors_are_counted_by_address(settings):
    settings.VISITOR_REQUESTS_PER_MINUTE = 1
    client = ApiClient()
    assert [client.get("/api/v1/billing/prices").status_code for _ in range(2)] == [200, 429]
    assert client.get("/api/v1/billing/prices", REMOTE_ADDR="10.0.0.9").status_code == 200


def test_guessing_one_account_is_slowed_down_whatever_the_address(shift_clock):
    email = make_member().actor.user.email

    def guess(number: int) -> int:
        body = {"email": email.upper() if number % 2 else email, "password": f"guess-{number}"}
        return ApiClient().post("/api/v1/auth/sign-in", body, REMOTE_ADDR=f"10.0.0.{number}").status_code

    statuses = [guess(number) for number in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    shift_clock(timedelta(minutes=10))
    assert guess(12) == 401


def test_guessing_many_accounts_from_one_address_is_slowed_down(monkeypatch):
    """At the 121st try. A window of a year gives no token back while a slow machine goes through them."""
    monkeypatch.setattr(api_auth, "SIGN_INS", replace(api_auth.SIGN_INS, window_s=365 * 86_400))

    def guess(number: int) -> int:
        body = {"email": f"nobody-{number}@example.com", "password": "a-guess-of-mine"}
        return ApiClient().post("/api/v1/auth/sign-in", body, REMOTE_ADDR="10.0.0.1").status_code

    assert [guess(number) for number in range(122)] == [401] * 120 + [429] * 2

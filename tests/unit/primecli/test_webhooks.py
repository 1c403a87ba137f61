"""`prime webhook`: what it sends, that a secret is printed where it is made alone, and what a test's exit code says."""

import pytest

AT = "2026-11-30T10:00:00Z"
WEBHOOK = {
    "id": "chook", "url": "https://ci.example.com/hook", "event_types": ["run.failed"], "description": "", "is_enabled": True,
    "disabled_reason": "", "failing_since": None, "previous_secret_until": AT,
}  # fmt: skip
SECRET = "whsec_c2VjcmV0"
DELIVERY = {
    "id": "cdel", "event_id": "msg_1", "event_type": "webhook.test", "state": "PENDING", "attempts": 0, "attempted_at": None,
    "next_attempt_at": AT, "response_status": None, "response_text": "", "error": "", "duration_ms": None,
}  # fmt: skip
HEARD = DELIVERY | {"state": "DELIVERED", "attempts": 1, "response_status": 204}
UNHEARD = DELIVERY | {"attempts": 1, "error": "no answer within 5 s"}
PATH = "/api/v1/webhooks"


@pytest.fixture
def hub(server):
    server.routes |= {
        ("GET", PATH): {"webhooks": [WEBHOOK]},
        ("POST", PATH): {"webhook": WEBHOOK, "secret": SECRET},
        ("PATCH", f"{PATH}/chook"): {"webhook": WEBHOOK},
        ("POST", f"{PATH}/chook/rotate"): {"webhook": WEBHOOK, "secret": SECRET},
        ("GET", f"{PATH}/chook/deliveries"): {"items": [UNHEARD], "next_cursor": None},
        ("POST", f"{PATH}/chook/test"): {"delivery": DELIVERY},
        ("POST", f"{PATH}/chook/deliveries/cdel/redeliver"): {"delivery": DELIVERY},
        ("GET", f"{PATH}/chook/deliveries/cdel"): {"delivery": HEARD},
    }
    return server


def test_the_secret_is_printed_where_it_is_made_and_nowhere_else(hub):
    made = hub.run("webhook", "create", WEBHOOK["url"], "-e", "run.failed", "-e", "run.paused", "-d", "alarm")
    assert made.exit_code == 0 and SECRET in made.stdout and "not shown again" in made.stderr
    assert hub.body() == {"url": WEBHOOK["url"], "event_types": ["run.failed", "run.paused"], "description": "alarm"}
    assert SECRET in hub.run("webhook", "rotate", "chook", "--overlap-hours", "2").stdout and hub.body() == {"overlap_hours": 2}
    assert SECRET not in hub.run("webhook", "list").output + hub.run("webhook", "update", "chook", "--disable").output
    assert hub.body() == {"is_enabled": False}


def test_an_update_of_nothing_is_refused(hub):
    assert hub.run("webhook", "update", "chook").exit_code == 2


@pytest.mark.parametrize("words", [("test", "chook"), ("redeliver", "chook", "cdel")])
def test_a_test_and_a_redelivery_wait_for_the_attempt(hub, words):
    heard = hub.run("webhook", *words)
    assert heard.exit_code == 0 and "delivered" in heard.stderr, heard.output
    hub.routes[("GET", f"{PATH}/chook/deliveries/cdel")] = {"delivery": UNHEARD}
    unheard = hub.run("webhook", *words)
    assert unheard.exit_code == 6 and "no answer within 5 s" in unheard.stderr


def test_deliveries_say_why_they_have_not_arrived(hub):
    assert "no answer within 5 s" in hub.run("webhook", "deliveries", "chook").stdout

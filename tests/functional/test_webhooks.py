"""Webhooks: what is told of, that it arrives signed and at least once, where it is not sent, and when it is given up."""

import asyncio
import json
import re
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

from controlplane.adapters.services import record_deployed, record_trouble
from controlplane.audit.models import AuditEvent
from controlplane.billing.price_book import publish_prices
from controlplane.billing.services import record_usage
from controlplane.billing.tariff import list_prices
from controlplane.core.models import OutboxMessage
from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.evals import access as eval_access
from controlplane.evals.history import move as move_evaluation
from controlplane.evals.models import EvalStatus
from controlplane.runs import access as run_access
from controlplane.runs.history import move, save_history
from controlplane.webhooks import delivering, services
from controlplane.webhooks.delivering import ATTEMPTS_MAX, Outcome, claim, pause_s, settle
from controlplane.webhooks.gateways import send_all
from controlplane.webhooks.models import Delivery, DeliveryState, EventType, Webhook
from controlplane.webhooks.publishing import publish
from controlplane.webhooks.signing import headers, new_secret
from tests.factories.adapters import make_adapter
from tests.factories.releases import make_release as make_checked_release
from tests.factories.runs import make_evaluation, make_funded_member, make_pool, make_run
from tests.factories.teams import client_for, make_member
from tests.factories.webhooks import URL, certified, make_webhook, receiver
from tests.fixtures.places import REPOSITORY
from trainer.contracts.events import Meter, RunState
from trainer.contracts.internal import UsageIn
from workers import outbox as outbox_worker
from workers import webhooks as worker

pytestmark = pytest.mark.django_db
WEBHOOKS = "/api/v1/webhooks"


@pytest.fixture
def ada():
    return make_member("ada")


@pytest.fixture
def client(ada):
    return client_for(ada)


@pytest.fixture
def told(settings):
    settings.PRIVATE_WEBHOOKS = True
    with receiver() as listening:
        yield listening


def published(member, event: EventType = EventType.RUN_COMPLETED, key: str = "1") -> None:
    """As a change does it, and the worker after it: the event has become deliveries."""
    with transaction.atomic():
        publish(member.team_id, event, key=key, data={"run_id": "crun"})
    spread_all()


def spread_all() -> None:
    """What the outbox holds for webhooks, run as the worker runs it."""
    with acting_as_system():
        for message in OutboxMessage.objects.filter(task="webhooks.spread", done_at=None):
            outbox_worker.run_message(message)


def deliveries(webhook: Webhook) -> list[Delivery]:
    with acting_as_system():
        return list(Delivery.objects.filter(webhook=webhook).order_by("created_at", "id"))


def delivered() -> int:
    return worker.deliver()


def attempts_of_one(shift_clock, webhook: Webhook, count: int, outcome: Outcome) -> None:
    """Claim and settle `count` attempts of the webhook's one delivery, the clock running on to each."""
    for _ in range(count):
        with acting_as_system():
            (order,) = claim(10)
            assert settle(order, outcome)
        shift_clock(timedelta(seconds=pause_s(order.attempt)))


class TestKeeping:
    def test_a_secret_is_told_once_and_sealed(self, client, ada):
        made = client.post(WEBHOOKS, {"url": URL, "event_types": ["run.failed"], "description": "alarm"}).json()
        secret, webhook = made["secret"], made["webhook"]
        assert secret.startswith("whsec_") and webhook["event_types"] == ["run.failed"] and webhook["is_enabled"]
        answers = [client.get(WEBHOOKS), client.get(f"{WEBHOOKS}/{webhook['id']}"), client.get("/api/v1/audit-events")]
        assert answers[0].json()["webhooks"] == [webhook] and answers[1].json() == {"webhook": webhook}
        with acting_as_system():
            rows = [*Webhook.objects.values(), *AuditEvent.objects.values()]
        assert secret not in str(rows) + "".join(answer.content.decode() for answer in answers)
        assert "webhook.created" in str(rows)

    def test_it_is_changed_switched_off_and_deleted_with_what_is_pending(self, client, ada):
        webhook, _ = make_webhook(ada)
        address = f"{WEBHOOKS}/{webhook.id}"
        changed = client.patch(address, {"event_types": [], "is_enabled": False}).json()["webhook"]
        assert changed["event_types"] == [] and not changed["is_enabled"] and changed["url"] == URL
        refused = client.post(f"{address}/test")
        assert refused.json()["code"] == "webhook_disabled" and "--enable" in refused.json()["hint"]
        client.patch(address, {"is_enabled": True})
        assert client.post(f"{address}/test").status_code == 200 and len(deliveries(webhook)) == 1
        assert client.delete(address).status_code == 204 and deliveries(webhook) == []
        assert client.get(address).status_code == 404

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"url": "http://hooks.example.com"}, "url"),
            ({"url": "ftp://hooks.example.com"}, "url"),
            ({"url": "https://user:word@hooks.example.com"}, "url"),
            ({"url": "https://hooks.example.com/#part"}, "url"),
            ({"url": "https://hooks.example.com/a b"}, "url"),
            ({"url": "https://hooks.example.com/\u007f"}, "url"),
            ({"url": "https://127.0.0.1/hook"}, "url"),
            ({"url": "https://169.254.169.254/latest/meta-data"}, "url"),
            ({"url": "https://[::ffff:10.0.0.1]/hook"}, "url"),
            ({"url": "https://localhost/hook"}, "url"),
            ({"url": "https://[oops/hook"}, "url"),
            ({"url": "https://" + "a" * 2_000}, "url"),
            ({"url": URL, "event_types": ["run.exploded"]}, 0),
            ({"url": URL, "description": "d" * 501}, "description"),
            ({"url": URL, "colour": "red"}, "colour"),
        ],
    )
    def test_a_refusal_names_the_field(self, client, body, field):
        answer = client.post(WEBHOOKS, body)
        assert answer.status_code == 422 and answer.json()["detail"][0]["loc"][-1] == field, answer.content

    def test_a_changed_address_is_checked_too_and_nothing_is_no_change(self, client, ada):
        webhook, _ = make_webhook(ada)
        answers = [client.patch(f"{WEBHOOKS}/{webhook.id}", body) for body in ({"url": "https://10.0.0.1/"}, {})]
        assert [answer.status_code for answer in answers] == [422, 422]
        assert deliveries(webhook) == [] and client.get(f"{WEBHOOKS}/{webhook.id}").json()["webhook"]["url"] == URL

    def test_a_team_has_so_many_and_no_more(self, client, monkeypatch):
        monkeypatch.setattr(services, "WEBHOOKS_PER_TEAM_MAX", 1)
        answers = [client.post(WEBHOOKS, {"url": URL}) for _ in range(2)]
        assert answers[1].status_code == 409 and answers[1].json()["code"] == "too_many_webhooks"


class TestTelling:
    def test_a_run_and_an_evaluation_tell_of_their_ends_in_the_same_transaction(self):
        make_pool()
        member = make_funded_member()
        webhook, _ = make_webhook(member)
        run, evaluation = make_run(member), make_evaluation(member)
        with acting_as_system(), transaction.atomic():
            locked = run_access.lock_run(run.id)
            move(locked, RunState.FAILED, reason="it broke")
            save_history(locked)
            move_evaluation(eval_access.lock_evaluation(evaluation.id), EvalStatus.CANCELLED, reason="cancelled by its owner")
        spread_all()
        run_told, evaluation_told = (json.loads(one.body) for one in deliveries(webhook))
        assert run_told["type"] == "run.failed" and run_told["data"]["reason"] == "it broke"
        assert run_told["data"]["run_id"] == run.id and run_told["data"]["url"] == f"http://testserver/runs/{run.id}"
        assert evaluation_told["type"] == "evaluation.cancelled" and evaluation_told["data"]["evaluation_id"] == evaluation.id

    def test_a_release_and_a_deployment_tell_what_became_of_them(self):
        make_pool()
        member = make_funded_member()
        webhook, _ = make_webhook(member)
        make_checked_release(member)
        ready, failed = make_adapter(member), make_adapter(member)
        with acting_as_system():
            type(ready).objects.filter(pk__in=[ready.pk, failed.pk]).update(is_wanted=True)
            record_deployed(ready.pk, ready.generation, digest=ready.digest)
            record_trouble(failed.pk, failed.generation, error="too large", is_final=True)
        spread_all()
        bodies = [json.loads(one.body) for one in deliveries(webhook)]
        assert [body["type"] for body in bodies][-2:] == ["deployment.ready", "deployment.failed"]
        assert bodies[-1]["data"]["reason"] == "too large" and bodies[-1]["data"]["adapter_id"] == failed.pk

    def test_a_wallet_that_falls_below_a_dollar_tells_so_once(self):
        publish_prices(list_prices({}))
        member = make_funded_member()
        webhook, _ = make_webhook(member)
        for sequence, cents in enumerate((850, 70, 10)):
            calls = UsageIn(
                meter=Meter.JUDGE_CALLS, quantity=cents * 100, sequence=str(sequence), at=datetime(2026, 11, 1, tzinfo=UTC)
            )
            with acting_for(member.team_id):
                record_usage(team_id=member.team_id, subject_kind="run", subject_id="c", segment=1, model="tiny", events=[calls])
        spread_all()
        (told,) = [json.loads(one.body) for one in deliveries(webhook)]
        assert told["type"] == "wallet.low" and told["data"]["balance_microusd"] == 800_000

    def test_only_those_who_want_an_event_get_it_and_once(self, ada):
        wants, (other, _), off = (
            make_webhook(ada, URL, "run.completed")[0],
            make_webhook(ada, URL, "run.failed"),
            make_webhook(ada)[0],
        )
        strangers, _ = make_webhook(make_member())
        with acting_for(ada.team_id):
            Webhook.objects.filter(id=off.id).update(is_enabled=False)
        published(ada)
        published(ada)
        assert [len(deliveries(one)) for one in (wants, other, off, strangers)] == [1, 0, 0, 0]

    def test_an_event_of_a_change_that_is_rolled_back_is_none(self, ada):
        webhook, _ = make_webhook(ada)
        with pytest.raises(RuntimeError), transaction.atomic():
            publish(ada.team_id, EventType.RUN_COMPLETED, key="1", data={})
            raise RuntimeError
        spread_all()
        assert deliveries(webhook) == []

    def test_spreading_twice_delivers_once(self, ada):
        webhook, _ = make_webhook(ada)
        for _ in range(2):
            worker.spread(team_id=ada.team_id, event_id="msg_1", event_type="run.completed", body="{}")
        assert len(deliveries(webhook)) == 1


class TestSending:
    def test_what_arrives_is_the_event_with_its_id(self, ada, told, client):
        webhook, _ = make_webhook(ada, told.url)
        published(ada)
        assert delivered() == 1 and delivered() == 0
        (got,), (kept,) = told.requests, deliveries(webhook)
        assert got.path == "/hook?team=7" and got.headers["host"] == f"127.0.0.1:{told.port}"
        assert got.headers["content-type"] == "application/json" and got.headers["webhook-id"] == kept.event_id
        assert json.loads(got.body)["data"] == {"run_id": "crun"} and kept.state == DeliveryState.DELIVERED
        row = client.get(f"{WEBHOOKS}/{webhook.id}/deliveries").json()["items"][0]
        assert (row["state"], row["attempts"], row["response_status"], row["next_attempt_at"]) == ("DELIVERED", 1, 204, None)

    def test_a_failure_is_tried_again_under_its_id_after_a_pause(self, ada, told, shift_clock):
        webhook, _ = make_webhook(ada, told.url)
        told.status, told.answer = 500, b"oops\x00" + b"x" * 10_000
        published(ada)
        assert delivered() == 1 and delivered() == 0
        (kept,) = deliveries(webhook)
        assert kept.state == DeliveryState.PENDING and kept.response_status == 500 and len(kept.response_text) == 500
        told.status, told.answer = 200, b"fine"
        shift_clock(timedelta(seconds=pause_s(1) + 1))
        assert delivered() == 1
        assert len({request.headers["webhook-id"] for request in told.requests}) == 1 and len(told.requests) == 2
        (kept,) = deliveries(webhook)
        assert (kept.state, kept.attempts_count, kept.response_text) == ("DELIVERED", 2, "fine")

    def test_a_redirect_is_a_failure_and_not_followed(self, ada, told):
        webhook, _ = make_webhook(ada, told.url)
        told.status, told.location = 302, f"http://127.0.0.1:{told.port}/elsewhere"
        published(ada)
        delivered()
        assert [request.path for request in told.requests] == ["/hook?team=7"] and deliveries(webhook)[0].response_status == 302

    async def test_an_attempt_has_a_deadline_and_others_do_not_wait_for_it(self, told):
        told.holds = threading.Event()
        order = delivering.Order("c1", 1, told.url, "{}", {})
        unused = delivering.Order("c2", 1, f"http://127.0.0.1:{closed_port()}/", "{}", {})
        unknown = delivering.Order("c3", 1, "https://hooks.example.invalid/", "{}", {})
        slow, closed, nowhere = await send_all([order, unused, unknown], may_be_private=True, deadline_s=0.3)
        assert nowhere.status is None and nowhere.error
        assert slow.status is None and "within 0.3 s" in slow.error
        assert closed.status is None and "ConnectError" in closed.error

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"])
    async def test_a_host_that_leads_into_our_network_is_not_connected_to(self, told, host):
        order = delivering.Order("c1", 1, f"http://{host}:{told.port}/", "{}", {})
        (outcome,) = await send_all([order], may_be_private=False)
        assert "own network" in outcome.error and told.requests == []

    async def test_the_address_that_was_checked_is_connected_to_under_the_hosts_name(self, told, monkeypatch):
        """A second look-up would find another address: there is none."""
        answers = iter([[(0, 0, 0, "", ("127.0.0.1", told.port))]])
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: next(answers))
        order = delivering.Order("c1", 1, f"http://hooks.example.com:{told.port}/", "{}", {})
        (outcome,) = await send_all([order], may_be_private=True)
        assert outcome.status == 204 and told.requests[0].headers["host"] == f"hooks.example.com:{told.port}"

    def test_a_server_must_prove_the_hosts_name_and_not_the_address(self, tmp_path, monkeypatch):
        context, trusted = certified("hooks.example.com", tmp_path)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        monkeypatch.setattr(socket, "getaddrinfo", lambda host, port, **_: [(0, 0, 0, "", ("127.0.0.1", port))])
        with receiver(context) as secure:
            hosts = ("hooks.example.com", "other.example.com")
            orders = [delivering.Order(host, 1, f"https://{host}:{secure.port}/", "{}", {}) for host in hosts]
            named, unnamed = asyncio.run(send_all(orders, may_be_private=True))
        assert named.status == 204 and len(secure.requests) == 1
        assert unnamed.status is None and "certificate" in unnamed.error

    async def test_a_name_with_one_private_address_among_public_ones_is_refused(self, monkeypatch):
        answers = [(0, 0, 0, "", (address, 443)) for address in ("93.184.216.34", "10.0.0.1")]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers)
        (outcome,) = await send_all([delivering.Order("c1", 1, URL, "{}", {})], may_be_private=False)
        assert "own network" in outcome.error

    def test_names_that_are_never_found_hold_up_nobody(self, told, monkeypatch):
        """More of them than the loop has threads of its own, and the round ends while they still wait."""
        found, look_up = threading.Event(), socket.getaddrinfo

        def slow(host: str, *rest: Any, **more: Any) -> Any:
            if host == "slow.example.com":
                found.wait()
            return look_up(host, *rest, **more)

        monkeypatch.setattr(socket, "getaddrinfo", slow)
        hanging = [delivering.Order(f"c{number}", 1, "http://slow.example.com/", "{}", {}) for number in range(40)]
        try:
            *slow_ones, heard = asyncio.run(
                send_all([*hanging, delivering.Order("c", 1, told.url, "{}", {})], may_be_private=True, deadline_s=1.0)
            )
        finally:
            found.set()
        assert heard.status == 204 and {one.error for one in slow_ones} == {"no answer within 1 s"}


class TestGivingUp:
    def test_attempts_end_and_a_redelivery_begins_anew_under_the_same_id(self, ada, client, shift_clock):
        webhook, _ = make_webhook(ada)
        published(ada)
        attempts_of_one(shift_clock, webhook, ATTEMPTS_MAX, Outcome(None, error="no answer"))
        (failed,) = deliveries(webhook)
        with acting_as_system():
            assert failed.state == DeliveryState.FAILED and claim(10) == []
        address = f"{WEBHOOKS}/{webhook.id}/deliveries/{failed.id}"
        again = client.post(f"{address}/redeliver").json()["delivery"]
        assert (again["state"], again["attempts"], again["event_id"]) == ("PENDING", 0, failed.event_id)
        assert client.post(f"{address}/redeliver").json()["code"] == "delivery_pending"
        with acting_as_system():
            (order,) = claim(10)
        assert order.headers["webhook-id"] == failed.event_id

    def test_days_of_nothing_but_failures_disable_it_with_an_audit_event(self, ada, client, shift_clock):
        webhook, _ = make_webhook(ada)
        published(ada)
        attempts_of_one(shift_clock, webhook, 1, Outcome(503))
        shift_clock(timedelta(days=5))
        attempts_of_one(shift_clock, webhook, 1, Outcome(503))
        told = client.get(f"{WEBHOOKS}/{webhook.id}").json()["webhook"]
        assert not told["is_enabled"] and "5 days" in told["disabled_reason"]
        shift_clock(timedelta(days=1))
        with acting_as_system():
            assert claim(10) == [] and AuditEvent.objects.filter(action="webhook.disabled", object_id=webhook.id).count() == 1
        enabled = client.patch(f"{WEBHOOKS}/{webhook.id}", {"is_enabled": True}).json()["webhook"]
        assert enabled["disabled_reason"] == "" and enabled["failing_since"] is None
        with acting_as_system():
            assert len(claim(10)) == 1

    def test_a_success_between_failures_keeps_it(self, ada, client, shift_clock):
        webhook, _ = make_webhook(ada)
        published(ada, key="1")
        attempts_of_one(shift_clock, webhook, 1, Outcome(503))
        attempts_of_one(shift_clock, webhook, 1, Outcome(200))
        shift_clock(timedelta(days=6))
        published(ada, key="2")
        attempts_of_one(shift_clock, webhook, 1, Outcome(503))
        assert client.get(f"{WEBHOOKS}/{webhook.id}").json()["webhook"]["is_enabled"]

    def test_a_receiver_that_is_gone_is_told_nothing_more(self, ada, client, shift_clock):
        webhook, _ = make_webhook(ada)
        published(ada)
        attempts_of_one(shift_clock, webhook, 1, Outcome(410))
        assert "410" in client.get(f"{WEBHOOKS}/{webhook.id}").json()["webhook"]["disabled_reason"]

    def test_the_outcome_of_a_claim_that_was_taken_over_changes_nothing(self, ada, shift_clock):
        webhook, _ = make_webhook(ada)
        published(ada)
        with acting_as_system():
            (first,) = claim(10)
            shift_clock(timedelta(seconds=delivering.CLAIM_S + 1))
            (second,) = claim(10)
            assert settle(second, Outcome(200)) and not settle(first, Outcome(500))
        assert deliveries(webhook)[0].state == DeliveryState.DELIVERED

    def test_a_claim_holds_few_of_one_team_so_that_all_have_their_turn(self, ada):
        make_webhook(ada)
        for number in range(delivering.PER_TEAM_MAX + 3):
            published(ada, key=str(number))
        other = make_member()
        make_webhook(other)
        published(other)
        with acting_as_system():
            orders = claim(50)
        assert len(orders) == delivering.PER_TEAM_MAX + 1

    def test_a_secret_that_cannot_be_opened_sends_nothing_unsigned(self, ada, client):
        webhook, _ = make_webhook(ada)
        published(ada)
        with acting_as_system():
            Webhook.objects.filter(id=webhook.id).update(sealed_secret="of another key")
            assert claim(10) == []
        assert "rotate" in client.get(f"{WEBHOOKS}/{webhook.id}").json()["webhook"]["disabled_reason"]

    def test_old_deliveries_are_forgotten(self, ada, shift_clock):
        webhook, _ = make_webhook(ada)
        published(ada)
        shift_clock(services.KEPT_FOR + timedelta(seconds=1))
        published(ada, key="2")
        with acting_as_system():
            assert services.forget_old() == 1
        assert len(deliveries(webhook)) == 1


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class TestSigning:
    def test_the_documented_verification_accepts_what_arrives_and_nothing_else(self, ada, told, client):
        _, secret = make_webhook(ada, told.url)
        published(ada)
        delivered()
        verified, (got,) = documented(), told.requests
        assert verified(secret, got.headers, got.body.encode())
        assert not verified(secret, got.headers, got.body.replace("crun", "cotherrun").encode())
        assert not verified(new_secret(), got.headers, got.body.encode())
        assert not verified(secret, got.headers | {"webhook-id": "msg_2"}, got.body.encode())
        assert not verified(secret, got.headers | {"webhook-timestamp": "1700000000"}, got.body.encode())

    def test_during_an_overlap_both_secrets_sign_and_after_it_one(self, ada, told, client, shift_clock):
        webhook, before = make_webhook(ada, told.url)
        after = client.post(f"{WEBHOOKS}/{webhook.id}/rotate", {"overlap_hours": 2}).json()["secret"]
        published(ada, key="1")
        delivered()
        shift_clock(timedelta(hours=2, seconds=1))
        published(ada, key="2")
        delivered()
        both, one = (request.headers["webhook-signature"].split() for request in told.requests)
        assert len(both) == 2 and len(one) == 1 and after != before
        verified, first = documented(), told.requests[0]
        assert verified(before, first.headers, first.body.encode()) and verified(after, first.headers, first.body.encode())

    def test_the_specifications_own_example(self):
        at = datetime.fromtimestamp(1614265330, UTC)
        signed = headers("msg_p5jXN8AQM9LWM0D4loKWxJek", '{"test": 2432232314}', at, ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
        assert signed["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def documented() -> Callable[[str, dict[str, str], bytes], bool]:
    """`verified` as docs/webhooks.md shows it."""
    (shown,) = re.findall(r"^```python\n(.*?)^```$", (REPOSITORY / "docs/webhooks.md").read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(shown, names)
    return names["verified"]

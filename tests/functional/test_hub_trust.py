"""What makes a release trustworthy after it was published: where it came from, its lock, and an operator who can withdraw it."""

import io
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, call_command

from tests.factories.packages import build_package
from tests.factories.releases import GREEN, RED, make_release
from tests.factories.teams import client_for, make_member
from tests.functional.test_hub_api import resolve, send_wheel
from trainer.contracts.internal import Compatibility
from trainer.contracts.release_checks import HarnessFit, Needs, SampleMessage, SampleRollout, SplitSeen, TaskProblem

pytestmark = pytest.mark.django_db
HUB = "/api/v1/environmentshub"
LOCK = "extra-words==2.5 \\\n    --hash=sha256:" + "0" * 64
REASON = "it sends task data elsewhere; write to security@example.com"


@pytest.fixture
def ada():
    return make_member("ada")


def detail(client, reference: str = "@latest") -> dict:
    answer = client.get(f"{HUB}/ada/digit-sum/{reference}")
    assert answer.status_code == 200, answer.content
    return answer.json()["data"]


class TestProvenance:
    def test_a_release_says_who_pushed_it_with_what_and_from_which_commit(self, ada):
        client, package = client_for(ada), build_package()
        environment = resolve(client)
        send_wheel(client, environment["id"], package)
        told = {"commit": "1a" * 20, "commit_is_clean": False, "repository": "https://example.com/ada/digits"}
        made = client.post(f"{HUB}/{environment['id']}/versions", package.source_declaration(**told)).json()["data"]
        parts = urlsplit(made["upload_url"])
        client.put(f"{parts.path}?{parts.query}", package.source, content_type="application/octet-stream")
        finalize = f"{HUB}/{environment['id']}/versions/{made['version_id']}/finalize"
        assert client.post(finalize, headers={"User-Agent": "prime/0.18.0"}).status_code == 200
        found = detail(client)
        assert found["provenance"]["pushed_by"] == "ada" and found["provenance"]["pushed_at"] == found["created_at"]
        assert found["provenance"] | told | {"client": "prime/0.18.0"} == found["provenance"]
        assert "commit" not in found["metadata"]

    def test_nothing_is_claimed_where_nothing_was_told(self, ada):
        make_release(ada)
        assert detail(client_for(ada))["provenance"]["commit"] is None

    @pytest.mark.parametrize(
        ("field", "value"),
        [("commit", "<script>"), ("repository", "javascript:alert(1)"), ("repository", "https://me:pw@host/x")],
    )
    def test_a_claim_has_a_shape(self, ada, field, value):
        client, package = client_for(ada), build_package()
        body = package.source_declaration(**{field: value})
        answer = client.post(f"{HUB}/{resolve(client)['id']}/versions", body)
        assert answer.status_code == 422
        assert answer.json()["detail"][0]["loc"] == ["body", "metadata", field]


class TestCompatibility:
    def test_what_the_rollout_showed_is_shown(self, ada):
        seen = Compatibility(
            interface="load_environment",
            agents=["judge", "player"],
            trained_agents=["player"],
            turns=3,
            calls_tools=True,
            needs=Needs(tools=["add"], harnesses=[HarnessFit(harness="rootstock-chat", evaluate=True, train=True)]),
        )
        make_release(ada, verdict=GREEN.model_copy(update={"compatibility": seen}))
        badge = detail(client_for(ada), "@latest/badge")
        assert badge["verdict"]["compatibility"] == detail(client_for(ada))["compatibility"] == seen.model_dump(mode="json")

    def test_the_tasks_looked_at_and_the_rollouts_are_kept_with_the_release(self, ada):
        sample = SampleRollout(task=4, state="failed", error="KeyError: 'k'", messages=[SampleMessage(role="user", content="?")])
        problem = TaskProblem(split="eval", task=7, field="prompt", message="is empty")
        split = SplitSeen(name="eval", tasks_count=9, checked=[0, 8])
        kept = {"samples": [sample], "problems": [problem], "splits": [split]}
        make_release(ada, verdict=RED.model_copy(update=kept))
        verdict = detail(client_for(ada), "@latest/badge")["verdict"]
        assert {name: verdict[name] for name in kept} == {
            name: [one.model_dump(mode="json") for one in rows] for name, rows in kept.items()
        }

    def test_a_verdict_of_an_earlier_release_of_ours_is_still_read(self, ada):
        from controlplane.core.tenancy import acting_as_system
        from controlplane.hub.models import Release

        release = make_release(ada)
        old = {"ok": True, "summary": "fine", "module": None, "line": None, "tasks_count": 12, "duration_s": 1.5}
        seen = {"agents": ["agent"], "trained_agents": ["agent"], "turns": 1, "calls_tools": False, "group_rewards": []}
        with acting_as_system():
            Release.objects.filter(id=release.id).update(verdict=old | {"compatibility": seen})
        found = detail(client_for(ada), "@latest/badge")["verdict"]
        assert (found["samples"], found["compatibility"]["needs"]) == ([], None)


class TestLock:
    def test_what_the_check_installed_is_what_every_run_installs(self, ada):
        from controlplane.hub.queries import release_spec

        release = make_release(ada, verdict=GREEN.model_copy(update={"requirements_lock": LOCK}))
        assert release_spec(release).requirements_lock == LOCK
        assert detail(client_for(ada), "@latest/badge")["requirements_lock"] == LOCK


def quarantine(reference: str = "ada/digit-sum@0.1.0", **options) -> str:
    printed = io.StringIO()
    call_command("quarantine_release", reference, stdout=printed, **({"reason": REASON} | options))
    return printed.getvalue()


class TestQuarantine:
    @pytest.fixture
    def release(self, ada):
        return make_release(ada, visibility="PUBLIC")

    def test_nobody_fetches_it_in_any_way(self, ada, release):
        assert "in quarantine" in quarantine()
        for client in (client_for(ada), client_for(make_member()), client_for()):
            found = detail(client)
            assert found["quarantined"] is True
            assert (found["wheel_url"], found["simple_index_url"], found["install_index_url"]) == (None, None, None)
            source = client.get(f"{HUB}/ada/digit-sum/@0.1.0/source")
            wheel = client.get(f"/hub/ada/digit-sum/packages/{release.wheel_filename}")
            assert (
                (source.status_code, source.json()["code"]) == (wheel.status_code, wheel.json()["code"]) == (409, "quarantined")
            )
            assert release.wheel_filename not in client.get("/hub/ada/digit-sum/simple/digit-sum/").content.decode()

    def test_its_owner_is_told_why_and_others_are_not(self, ada, release):
        from controlplane.audit.models import AuditEvent
        from controlplane.core.tenancy import acting_for

        quarantine()
        assert detail(client_for(ada))["quarantine_reason"] == REASON
        for client in (client_for(make_member()), client_for()):
            assert detail(client)["quarantine_reason"] is None
            assert REASON not in client.get(f"{HUB}/ada/digit-sum/@0.1.0/source").content.decode()
        with acting_for(ada.team_id):
            event = AuditEvent.objects.get(action="release.quarantined")
        assert (event.user, event.object_id, event.detail["reason"]) == (None, release.id, REASON)

    def test_nobody_starts_it_not_even_by_force(self, ada, release):
        from controlplane.hub.access import resolve_release
        from controlplane.hub.errors import Quarantined

        quarantine()
        with pytest.raises(Quarantined, match="task data"):
            resolve_release(ada.actor, "ada/digit-sum@0.1.0", forced=True)
        with pytest.raises(Quarantined) as refused:
            resolve_release(make_member().actor, "ada/digit-sum")
        assert REASON not in refused.value.detail

    def test_what_was_started_before_gets_no_wheel_and_says_why(self, ada, release):
        from controlplane.hub.access import release_by_id
        from controlplane.hub.queries import release_spec

        quarantine()
        spec = release_spec(release_by_id(release.id))
        assert spec.wheel_url == "" and REASON in spec.withheld

    def test_latest_passes_it_over_where_there_is_another(self, ada, release):
        make_release(ada, build_package(version="0.2.0", content="x = 2\n"), visibility="PUBLIC")
        quarantine("ada/digit-sum@0.2.0")
        assert detail(client_for())["semantic_version"] == "0.1.0"
        rows = client_for().get(f"{HUB}/ada/digit-sum/versions").json()["data"]["versions"]
        assert [(row["version"], row["quarantined"]) for row in rows] == [("0.2.0", True), ("0.1.0", False)]

    def test_a_whole_environment_goes_and_comes_back(self, ada, release):
        make_release(ada, build_package(version="0.2.0", content="x = 2\n"), visibility="PUBLIC")
        assert len(quarantine("ada/digit-sum").splitlines()) == 2
        assert detail(client_for())["quarantined"] is True
        quarantine("ada/digit-sum", lift=True)
        assert detail(client_for())["quarantined"] is False
        assert client_for().get(f"{HUB}/ada/digit-sum/@0.1.0/source").status_code == 302

    @pytest.mark.parametrize(
        ("reference", "reason"), [("ada/digit-sum", " "), ("ada/nothing", REASON), ("ada/digit-sum@9.9", REASON)]
    )
    def test_an_operators_slip_is_named(self, release, reference, reason):
        with pytest.raises(CommandError):
            quarantine(reference, reason=reason)

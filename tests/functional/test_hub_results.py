"""What comes of an environment: the leaderboard, the adapters trained on it, its badge as a picture, another check."""

from xml.etree import ElementTree

import pytest

from controlplane.core.tenancy import acting_for
from controlplane.evals.models import Evaluation
from controlplane.hub.dependencies import requirement_of
from tests.factories.adapters import make_adapter
from tests.factories.packages import build_package
from tests.factories.releases import GREEN, RED, make_release
from tests.factories.runs import fund, make_pool
from tests.factories.teams import client_for, make_member

pytestmark = pytest.mark.django_db
HUB = "/api/v1/environmentshub"


@pytest.fixture
def ada():
    return make_member("ada")


def evaluation(member, release, model: str, score: float | None, status: str = "COMPLETED", **more) -> Evaluation:
    with acting_for(member.team_id):
        return Evaluation.objects.create(
            team=member.actor.team,
            created_by=member.actor.user,
            name=f"{model} {score}",
            status=status,
            model_name=model,
            avg_score=score,
            **{"samples_count": 8, "environment_ids": [release.environment_id]} | more,
        )


class TestLeaderboard:
    def rows(self, member) -> list[tuple[str, float]]:
        answer = client_for(member).get(f"{HUB}/ada/digit-sum/leaderboard")
        assert answer.status_code == 200, answer.content
        return [(row["model"], row["score"]) for row in answer.json()["data"]]

    def test_each_model_stands_with_its_best_evaluation(self, ada):
        release = make_release(ada)
        for model, score in (("tiny", 0.2), ("tiny", 0.6), ("smollm2", 0.4), ("big", 0.9)):
            evaluation(ada, release, model, score)
        assert self.rows(ada) == [("big", 0.9), ("tiny", 0.6), ("smollm2", 0.4)]

    def test_what_is_unfinished_unscored_or_of_something_else_does_not_count(self, ada):
        release, other = make_release(ada), make_release(ada, build_package("poems"))
        evaluation(ada, release, "running", 0.9, status="RUNNING")
        evaluation(ada, release, "unscored", None)
        evaluation(ada, other, "elsewhere", 0.9)
        assert self.rows(ada) == []

    def test_a_team_sees_its_own_work_and_what_others_have_published(self, ada):
        release, eve = make_release(ada, visibility="PUBLIC"), make_member("eve")
        evaluation(ada, release, "tiny", 0.5)
        evaluation(ada, release, "tiny", 0.4, is_public=True)
        evaluation(ada, release, "half", 0.9, is_public=True, status="RUNNING")
        assert self.rows(ada) == [("tiny", 0.5)]
        assert self.rows(eve) == self.rows(None) == [("tiny", 0.4)]
        evaluation(eve, release, "tiny", 0.6)
        assert self.rows(eve) == [("tiny", 0.6), ("tiny", 0.4)] and self.rows(ada) == [("tiny", 0.5)]

    def test_a_row_tells_how_sure_it_is_how_much_it_cost_and_of_how_many_it_is_the_best(self, ada):
        """Of what was pushed, the cost is usage times the stated prices; a hosted one has its bill."""
        release = make_release(ada, visibility="PUBLIC")
        sample = {"rollout_number": 0, "usage": {"input_tokens": 10, "output_tokens": 5}}
        prices = {"prices": {"input_usd_per_mtok": 2, "output_usd_per_mtok": 4}}
        client = client_for(ada)
        for rewards in ((1.0, 0.0, 1.0, 1.0), (0.0, 0.0)):
            body = {"name": "x", "model_name": "big", "environments": [{"id": release.environment_id}], "is_public": True}
            made = client.post("/api/v1/evaluations", body | {"metadata": prices | {"version": "0.1.0"}}).json()
            samples = [sample | {"example_id": number, "reward": reward} for number, reward in enumerate(rewards)]
            client.post(f"/api/v1/evaluations/{made['evaluation_id']}/samples", {"samples": samples})
            client.post(f"/api/v1/evaluations/{made['evaluation_id']}/finalize", {})
        (row,) = client_for(make_member()).get(f"{HUB}/ada/digit-sum/leaderboard").json()["data"]
        assert (row["team"], row["score"], row["mean_score"], row["evaluations_count"]) == ("ada", 0.75, 0.375, 2)
        assert row["ci_low"] < 0.75 < row["ci_high"] and row["samples_count"] == 4 and row["version"] == "0.1.0"
        assert row["cost_per_sample_usd"] == pytest.approx((10 * 2 + 5 * 4) / 1e6)
        assert (row["is_own"], row["is_public"], row["is_hosted"]) == (False, True, False)

    def test_that_of_a_private_environment_is_for_those_who_see_it(self, ada):
        evaluation(ada, make_release(ada), "tiny", 0.5, is_public=True)
        assert self.rows(ada) == [("tiny", 0.5)]
        for stranger in (make_member(), None):
            assert client_for(stranger).get(f"{HUB}/ada/digit-sum/leaderboard").status_code == 404


class TestPublished:
    """What somebody else's evaluation shows, and to whom."""

    CONFIG = {"api_base_url": "https://inside.example", "num_examples": 8}
    METADATA = {"version": "0.1.0", "base_url": "https://inside.example"}

    def published(self, ada, release, **more) -> str:
        told = {"config": self.CONFIG, "metadata": self.METADATA, "error_message": "inside.example said no", "group_id": "g" * 25}
        return f"/api/v1/evaluations/{evaluation(ada, release, 'tiny', 0.5, **told | more).id}"

    def test_it_is_read_by_everybody_and_written_by_its_team(self, ada):
        path, eve = self.published(ada, make_release(ada, visibility="PUBLIC"), is_public=True), client_for(make_member())
        found = eve.get(path).json()
        assert (found["avg_score"], found["is_own"], found["metadata"]["version"]) == (0.5, False, "0.1.0")
        assert "inside.example" not in eve.get(path).content.decode() and found["group_id"] is None
        assert eve.get(f"{path}/samples").json()["total"] == 0
        assert "inside.example" in client_for(ada).get(path).content.decode()
        for method, address, body in (
            ("put", path, {"is_public": False}),
            ("delete", path, None),
            ("post", f"{path}/finalize", {}),
        ):
            assert getattr(eve, method)(address, *([body] if body is not None else [])).status_code == 404
        logs = path.replace("/evaluations/", "/hosted-evaluations/") + "/logs"
        assert eve.get(logs).status_code == 404

    def test_it_is_published_and_taken_back_at_any_time(self, ada):
        path, eve = self.published(ada, make_release(ada, visibility="PUBLIC")), client_for(make_member())
        for is_public, status in ((None, 404), (True, 200), (False, 404)):
            if is_public is not None:
                assert client_for(ada).put(path, {"is_public": is_public}).json()["is_public"] is is_public
            assert eve.get(path).status_code == eve.get(f"{path}/samples").status_code == status

    @pytest.mark.parametrize("more", [{"status": "RUNNING"}, {"environment_ids": []}, {"deleted_at": "2026-01-01T00:00:00Z"}])
    def test_what_has_not_been_completed_or_is_of_nothing_stays_the_teams(self, ada, more):
        path = self.published(ada, make_release(ada, visibility="PUBLIC"), is_public=True, **more)
        assert client_for(make_member()).get(path).status_code == 404

    def test_with_the_environment_it_becomes_private_again(self, ada):
        path, eve = self.published(ada, make_release(ada, visibility="PUBLIC"), is_public=True), client_for(make_member())
        assert eve.get(path).status_code == 200
        client_for(ada).post(f"{HUB}/resolve", {"name": "digit-sum", "visibility": "PRIVATE"})
        assert eve.get(path).status_code == eve.get(f"{path}/samples").status_code == 404


class TestRelated:
    def of(self, member) -> tuple[list[str], list[str]]:
        found = client_for(member).get(f"{HUB}/ada/digit-sum/related").json()["data"]
        return tuple([row["environment"] for row in found[kind]] for kind in ("dependants", "forks"))

    def test_who_wants_its_wheel_depends_on_it_and_a_name_alone_says_nothing(self, ada):
        wanted, bob = requirement_of(make_release(ada, visibility="PUBLIC")), make_member("bob")
        for name, requires in (("sums", wanted), ("namesake", "digit-sum>=0.1")):
            make_release(bob, build_package(name, content=f"{name} = 1\n", requires=requires), visibility="PUBLIC")
        make_release(bob, build_package("hidden", content="hidden = 1\n", requires=wanted))
        assert self.of(None) == (["bob/sums"], [])
        assert self.of(bob) == (["bob/hidden", "bob/sums"], [])
        client_for(bob).delete(f"{HUB}/bob/sums/@0.1.0")
        assert self.of(None) == ([], [])

    def test_forks_stand_apart_and_are_seen_by_those_who_may(self, ada):
        make_release(ada, visibility="PUBLIC")
        bob = make_member("bob")
        assert client_for(bob).post(f"{HUB}/ada/digit-sum/fork", {}).status_code == 200
        assert (self.of(bob), self.of(ada)) == (([], ["bob/digit-sum"]), ([], []))


def test_adapters_are_found_by_the_environment_of_their_run(ada):
    release = make_release(ada)
    fund(ada)
    make_pool()
    with acting_for(ada.team_id):
        trained = make_adapter(ada)
        trained.run.releases = [release.id]
        trained.run.save(update_fields=["releases"])
        make_adapter(ada)
    answer = client_for(ada).get("/api/v1/rft/adapters", {"environment": "ada/digit-sum"})
    assert [row["id"] for row in answer.json()["adapters"]] == [trained.id]
    assert client_for(ada).get("/api/v1/rft/adapters", {"environment": "ada/absent"}).status_code == 404


class TestBadgeImage:
    @pytest.mark.parametrize(
        ("verdict", "words"), [(GREEN, "0.1.0 check passed"), (RED, "0.1.0 check failed"), (None, "0.1.0 waiting for its check")]
    )
    def test_it_says_what_the_check_found_and_runs_nothing(self, ada, verdict, words):
        make_release(ada, visibility="PUBLIC", verdict=verdict)
        answer = client_for().get("/hub/ada/digit-sum/badge.svg")
        assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml")
        assert answer["Content-Security-Policy"] == "default-src 'none'" and "max-age=60" in answer["Cache-Control"]
        drawn = ElementTree.fromstring(answer.content)
        assert drawn.attrib["aria-label"] == f"digit-sum: {words}"

    def test_a_private_environment_has_none(self, ada):
        make_release(ada)
        assert client_for(ada).get("/hub/ada/digit-sum/badge.svg").status_code == 404


class TestAnotherCheck:
    def test_it_is_asked_for_once_at_a_time_and_replaces_the_verdict(self, ada):
        from controlplane.core.models import OutboxMessage
        from controlplane.hub import services

        release = make_release(ada, verdict=RED)
        asked = client_for(ada).post(f"{HUB}/ada/digit-sum/@0.1.0/check")
        assert (asked.status_code, asked.json()["data"]["badge"]) == (200, "PENDING")
        assert OutboxMessage.objects.filter(payload={"release_id": release.id}).count() == 2
        again = client_for(ada).post(f"{HUB}/ada/digit-sum/@0.1.0/check")
        assert again.status_code == 409
        services.record_verdict(release.id, GREEN)
        assert client_for(ada).get(f"{HUB}/ada/digit-sum/@0.1.0/badge").json()["data"]["badge"] == "GREEN"

    def test_strangers_ask_for_none(self, ada):
        make_release(ada, visibility="PUBLIC")
        assert client_for(make_member()).post(f"{HUB}/ada/digit-sum/@0.1.0/check").status_code == 404
        assert client_for().post(f"{HUB}/ada/digit-sum/@0.1.0/check").status_code == 401

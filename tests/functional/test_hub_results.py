"""What comes of an environment: the leaderboard, the adapters trained on it, its badge as a picture, another check."""

from xml.etree import ElementTree

import pytest

from controlplane.core.tenancy import acting_for
from controlplane.evals.models import Evaluation
from tests.factories.adapters import make_adapter
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
            environment_ids=[release.environment_id],
            avg_score=score,
            samples_count=8,
            **more,
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
        from tests.factories.packages import build_package

        release, other = make_release(ada), make_release(ada, build_package("poems"))
        evaluation(ada, release, "running", 0.9, status="RUNNING")
        evaluation(ada, release, "unscored", None)
        evaluation(ada, other, "elsewhere", 0.9)
        assert self.rows(ada) == []

    def test_a_team_sees_its_own_work(self, ada):
        release, eve = make_release(ada, visibility="PUBLIC"), make_member("eve")
        evaluation(ada, release, "tiny", 0.5)
        assert self.rows(eve) == []
        evaluation(eve, release, "mine", 0.1)
        assert self.rows(eve) == [("mine", 0.1)]


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

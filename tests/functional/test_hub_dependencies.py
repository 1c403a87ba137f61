"""Environments that stand on others: what a release may require by address, who is refused it, and a check that plays one."""

import asyncio
from pathlib import Path

import pytest
from django.core.management import call_command

from controlplane.hub import collaborators, services
from controlplane.hub.dependencies import requirement_of
from controlplane.hub.models import Release
from controlplane.hub.queries import release_spec
from tests.factories.packages import Package, build_package
from tests.factories.releases import make_release
from tests.factories.runs import fund, make_pool
from tests.factories.teams import Member, client_for, make_member
from tests.fixtures.orchestrator_world import world
from tests.functional.test_hub_api import resolve, send_wheel
from tests.functional.test_orchestrator_sandboxed import spec_of
from trainer.contracts.internal import Finish
from trainer.contracts.rollouts import HUB_WHEELS_MAX, ReleaseSpec
from trainer.orchestrator.__main__ import attend
from trainer.orchestrator.attempt.control import ControlClient, internal_client

HUB = "/api/v1/environmentshub"
TASKSET = """
import verifiers.v1 as vf
from digit_sum import x

__all__ = ["WorthTaskset"]


class WorthTask(vf.Task):
    @vf.reward
    async def is_worth(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply) > x)


class WorthTaskset(vf.Taskset[WorthTask]):
    def load(self):
        yield WorthTask(vf.TaskData(prompt=f"{x}+1?"), self.config.task)
"""


@pytest.fixture
def ada(db) -> Member:
    return make_member("ada")


def standing(name: str, *requires: str, content: str = "y = 1\n") -> Package:
    """A package that requires these lines."""
    return build_package(name, content=content, requires="\nRequires-Dist: ".join(requires))


def dependants(reader: Member | None, slug: str = "ada/digit-sum") -> list[str]:
    return [row["environment"] for row in client_for(reader).get(f"{HUB}/{slug}/related").json()["data"]["dependants"]]


def pushed(sender: Member, package: Package, slug: str = "", **more):
    """The answer to the end of its wheel's upload."""
    client = client_for(sender)
    there = client.get(f"{HUB}/{slug}/@latest").json()["data"] if slug else resolve(client, package.name, **more)
    return send_wheel(client, there["id"], package)


def refusal(answer) -> str:
    assert answer.status_code == 422, answer.content
    (problem,) = answer.json()["detail"]
    assert problem["loc"] == ["body", "archive", "METADATA"] and "digit-sum @" in problem["msg"]
    return problem["msg"]


class TestWhatMayBeRequired:
    def test_the_line_that_a_release_shows_is_taken_and_reaches_the_host_as_a_signed_address(self, ada):
        release = make_release(ada)
        line = client_for(ada).get(f"{HUB}/ada/digit-sum/@latest").json()["data"]["requirement"]
        assert line == requirement_of(release)
        made = make_release(ada, standing("sums", line))
        (wheel,) = release_spec(made).hub_wheels
        assert (wheel.address, wheel.wheel_sha256) == (line.partition(" @ ")[2], release.wheel_sha256)
        assert not wheel.wheel_url.startswith(wheel.address.partition("#")[0]), "that one opens to nobody"
        assert client_for(ada).get(f"{HUB}/ada/sums/@latest").json()["data"]["url_dependencies"] == [line]

    def test_what_a_dependency_stands_on_comes_along_and_has_all_of_them_as_dependants(self, ada):
        line = requirement_of(make_release(ada, visibility="PUBLIC"))
        middle = make_release(ada, standing("sums", line), visibility="PUBLIC")
        deep = make_release(make_member("bob"), standing("deep", requirement_of(middle)), visibility="PUBLIC")
        assert [wheel.wheel_filename.partition("-")[0] for wheel in release_spec(deep).hub_wheels] == ["sums", "digit_sum"]
        assert dependants(None) == ["bob/deep", "ada/sums"] and dependants(None, "ada/sums") == ["bob/deep"]

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("#sha256=", "#md5="),
            ("digit-sum @", "digit-sun @"),
            ("digit-sum @", "digit-sum[more] @"),
            ("/digit-sum/", "/Digit_Sum/"),
        ],
    )
    def test_a_line_of_another_spelling_is_refused_with_the_right_one(self, ada, old, new):
        line = requirement_of(make_release(ada, visibility="PUBLIC"))
        answer = pushed(ada, standing("sums", line.replace(old, new)))
        assert answer.status_code == 422 and f"it must read '{line}'" in answer.json()["detail"][0]["msg"]

    def test_an_address_without_or_with_another_digest_is_refused(self, ada):
        line = requirement_of(make_release(ada, visibility="PUBLIC"))
        bare = line.partition("#")[0]
        for wrong in (bare, f"{bare}#sha256={'0' * 64}"):
            assert f"it must read '{line}'" in refusal(pushed(ada, standing("sums", wrong)))

    def test_another_teams_private_one_looks_absent(self, ada):
        line = requirement_of(make_release(ada))
        bob = make_member("bob")
        foreign = refusal(pushed(bob, standing("sums", line)))
        absent = refusal(pushed(bob, standing("sums", line.replace("ada/digit-sum/", "ada/digit-max/"))))
        assert "no such wheel" in foreign and foreign.replace("digit-sum/", "digit-max/") == absent

    def test_a_collaborator_cannot_read_the_teams_private_ones_by_standing_on_them(self, ada):
        line, bob = requirement_of(make_release(ada)), make_member("bob")
        shared = make_release(ada, standing("shared"))
        collaborators.invite(ada.actor, shared.environment, "bob")
        package = build_package("shared", "0.2.0", content="y = 2\n", requires=line)
        assert "no such wheel" in refusal(pushed(bob, package, "ada/shared"))
        assert pushed(ada, package, "ada/shared").status_code == 200

    def test_a_public_one_stands_on_public_ones(self, ada):
        line = requirement_of(make_release(ada))
        assert "ada/digit-sum is private" in refusal(pushed(ada, standing("sums", line), visibility="PUBLIC"))
        assert pushed(ada, standing("sums", line), visibility="PRIVATE").status_code == 200

    def test_what_stands_on_a_private_one_is_not_published_before_it(self, ada):
        make_release(ada, standing("sums", requirement_of(make_release(ada))))
        published = client_for(ada).post(f"{HUB}/resolve", {"name": "sums", "visibility": "PUBLIC"})
        assert published.status_code == 422 and "'ada/digit-sum', which is private" in published.json()["detail"][0]["msg"]
        for name in ("digit-sum", "sums"):
            resolve(client_for(ada), name, visibility="PUBLIC")

    def test_one_name_means_one_release(self, ada):
        first = requirement_of(make_release(ada))
        second = requirement_of(make_release(ada, build_package(version="0.2.0", content="x = 2\n")))
        assert "one name means one release" in refusal(pushed(ada, standing("sums", first, second)))
        own = build_package(version="0.3.0", content="x = 3\n", requires=first)
        assert "the name of the environment itself" in refusal(pushed(ada, own, "ada/digit-sum"))

    def test_there_is_a_limit(self, ada, monkeypatch):
        monkeypatch.setattr("controlplane.hub.dependencies.HUB_WHEELS_MAX", 1)
        middle = make_release(ada, standing("sums", requirement_of(make_release(ada))))
        assert HUB_WHEELS_MAX > 1 and "at most 1 others" in refusal(pushed(ada, standing("deep", requirement_of(middle))))


class TestWhatBecomesOfIt:
    @pytest.fixture
    def made(self, ada) -> Release:
        """A public release of bob's that stands on ada's."""
        line = requirement_of(make_release(ada, visibility="PUBLIC"))
        return make_release(make_member("bob"), standing("sums", line), visibility="PUBLIC")

    def refused(self, ada) -> str:
        make_pool()
        fund(ada)
        body = {"model": {"name": "tiny"}, "environments": [{"id": "bob/sums"}], "max_steps": 4, "batch_size": 8}
        run = client_for(ada).post("/api/v1/rft/runs", body)
        hosted = {"environment_ids": ["bob/sums"], "inference_model": "tiny", "force": True}
        evaluation = client_for(ada).post("/api/v1/hosted-evaluations", hosted)
        assert run.status_code == evaluation.status_code == 409, (run.content, evaluation.content)
        assert run.json()["detail"] == evaluation.json()["detail"]
        return run.json()["detail"]

    def test_one_that_was_yanked_is_still_had(self, ada, made):
        client_for(ada).delete(f"{HUB}/ada/digit-sum/@0.1.0")
        assert len(release_spec(made).hub_wheels) == 1 and not release_spec(made).withheld

    def test_quarantine_reaches_what_stands_on_it(self, ada, made):
        call_command("quarantine_release", "ada/digit-sum@0.1.0", reason="for its owner's eyes")
        spec = release_spec(made)
        assert spec.withheld.endswith("ada/digit-sum@0.1.0 is in quarantine; require another release of it")
        assert (spec.wheel_url, spec.hub_wheels) == ("", []) and "eyes" not in spec.withheld
        assert spec.withheld in self.refused(ada)

    def test_one_that_became_private_is_told_apart_by_nobody_else(self, ada, made):
        services.get_or_create_environment(ada.actor.team, "digit-sum", "PRIVATE")
        assert "no such wheel" in release_spec(made).withheld and "no such wheel" in self.refused(ada)


@pytest.mark.django_db(transaction=True)
def test_a_release_plays_with_the_module_of_another_and_is_listed_as_its_dependant(
    live_origin, settings, sandbox_driver, base_venv, runner_dir, tmp_path
):
    """Both are private: no address of theirs opens without a signature."""
    settings.PUBLIC_ORIGIN = live_origin
    ada = make_member("ada")
    line = requirement_of(make_release(ada))
    release = make_release(ada, standing("digit-worth", line, content=TASKSET), verdict=None)
    finish = asyncio.run(checked(release_spec(release), runner_dir, tmp_path))
    assert finish.verdict is not None and finish.verdict.ok, finish
    assert [sample.preview for sample in finish.verdict.samples] == ["1+1?"] and not finish.verdict.requirements_lock
    services.record_verdict(release.id, finish.verdict)
    assert dependants(ada) == ["ada/digit-worth"]


async def checked(release: ReleaseSpec, runner_dir: Path, artifacts: Path) -> Finish:
    async with world(spec_of("release", release), artifacts, None) as place:
        control = ControlClient(internal_client(place.control_url, "token"))
        finish: Finish = await attend(control, runner_dir=runner_dir, pool_token=None)
        await control.aclose()
    return finish

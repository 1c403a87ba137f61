"""The `prime` command as a process against the whole application: what people type, and what comes of it."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from controlplane.core.clock import now
from controlplane.core.tenancy import acting_for
from controlplane.hub.models import Visibility
from controlplane.runs.models import Run, RunEvent
from controlplane.runs.services import stop_run
from primecli.app import app
from tests.factories.releases import GREEN, RED, make_release
from tests.factories.runs import make_funded_member, make_pool, make_run
from tests.factories.teams import Member, make_member
from tests.fixtures.places import REPOSITORY
from trainer.contracts.internal import Compatibility, ReleaseVerdict
from trainer.contracts.packages import tree_hash

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
DEADLINE_S = 60.0
LINES = 1500
"""More than a log's tail shows at once."""
EXAMPLE = REPOSITORY / "examples" / "environments" / "digit_sum"
SEEN = Compatibility(agents=["judge", "player"], trained_agents=["player"], turns=1, calls_tools=False)
MODELS = {"small": [], "large": ["--public"]}
"""Two models of other makers, and how their results are pushed."""


class Prime:
    """One person's command line in a home folder of its own: within this process, or, where it has to wait, as one of its own."""

    def __init__(self, home: Path, origin: str) -> None:
        self.environ = {"HOME": str(home), "PRIME_API_BASE_URL": origin, "NO_PROXY": "127.0.0.1", "COLUMNS": "200"}
        home.mkdir(exist_ok=True)

    def start(self, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "primecli.app", *arguments]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PRIME_")}
        return subprocess.Popen(
            command, env=kept | self.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __call__(self, *arguments: str, exits: int = 0) -> str:
        """Standard output; on a failure that is expected, all that was said."""
        done = CliRunner().invoke(app, list(arguments), env=self.environ)
        assert done.exit_code == exits, f"{arguments} ended with {done.exit_code}:\n{done.output}\n{done.exception!r}"
        return done.stdout if exits == 0 else done.output

    def json(self, *arguments: str) -> dict:
        return json.loads(self(*arguments, "-o", "json"))


@pytest.fixture
def origin(live_origin, settings) -> str:
    settings.PUBLIC_ORIGIN = live_origin
    return live_origin


@pytest.fixture
def person(origin, tmp_path):
    """`person("ada")` has signed up; their environments are `ada/…`."""

    def sign_up(slug: str) -> Prime:
        prime = Prime(tmp_path / slug, origin)
        prime("sign-up", "--email", f"{slug}@example.org", "--slug", slug)
        return prime

    return sign_up


def keyed(member: Member, origin: str, tmp_path: Path) -> Prime:
    """The command line of somebody who has a key already."""
    prime = Prime(tmp_path / member.slug, origin)
    prime.environ |= {"PRIME_API_KEY": member.key}
    return prime


def results(folder: Path, model: str) -> Path:
    """A folder as verifiers writes it: one sample of ada/digit-sum, half right."""
    folder.mkdir()
    (folder / "metadata.json").write_text(json.dumps({"env_id": "ada/digit-sum", "model": model}))
    (folder / "results.jsonl").write_text('{"example_id": 0, "reward": 0.5}\n')
    return folder


@pytest.fixture
def project(tmp_path) -> Path:
    """A copy of a shipped example, whose wheel is really built."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "digit_sum", ignore=shutil.ignore_patterns("dist", "__pycache__", ".prime")))


def settle(slug: str, verdict: ReleaseVerdict) -> None:
    """What the worker's check does, once the release is there."""
    from controlplane.core.tenancy import acting_as_system
    from controlplane.hub.models import Release
    from controlplane.hub.services import record_verdict

    owner, _, name = slug.partition("/")
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        with acting_as_system():
            found = Release.objects.filter(environment__team__slug=owner, environment__name=name, badge="PENDING").first()
        if found is not None:
            return record_verdict(found.id, verdict)
        time.sleep(0.1)
    raise AssertionError(f"no release of {slug} arrived")


def test_an_environment_goes_up_and_comes_back_unchanged(person, project, tmp_path):
    ada = person("ada")
    made = ada.json("push", str(project), "--no-wait")
    assert (made["environment"], made["version"]) == ("ada/digit-sum", "0.1.0")
    assert made["content_hash"] == tree_hash(project)
    assert ada.json("env", "info", "ada/digit-sum")["data"]["visibility"] == "PRIVATE"

    pulled = ada.json("pull", "ada/digit-sum", str(tmp_path / "copy"))
    assert pulled["content_hash"] == tree_hash(tmp_path / "copy") == tree_hash(project)
    for folder in (tmp_path / "copy", project):
        again = ada.json("push", str(folder), "--no-wait")
        assert (again["version"], again["content_hash"], again["unchanged"]) == ("0.1.0", made["content_hash"], True)
    assert len(ada.json("env", "versions", "ada/digit-sum")["data"]["versions"]) == 1

    (project / "digit_sum" / "__init__.py").write_text((project / "digit_sum" / "__init__.py").read_text() + "\n")
    assert "immutable" in ada("push", str(project), "--no-wait", exits=1)
    assert ada.json("env", "push", str(project), "--auto-bump", "--no-wait")["version"] == "0.1.1"
    rows = ada.json("env", "versions", "ada/digit-sum")["data"]["versions"]
    assert [row["version"] for row in rows] == ["0.1.1", "0.1.0"]


@pytest.mark.parametrize(("verdict", "exit_code", "said"), [(GREEN, 0, "12 tasks"), (RED, 6, "digit_sum.tasks, line 7")])
def test_a_push_waits_for_its_badge(person, project, verdict, exit_code, said):
    pushing = person("ada").start("push", str(project))
    settle("ada/digit-sum", verdict)
    out, err = pushing.communicate(timeout=DEADLINE_S)
    assert pushing.returncode == exit_code, out + err
    assert said in err and "/environments/ada/digit-sum" in err


def test_what_is_private_is_absent_for_others(person, project):
    ada, eve = person("ada"), person("eve")
    ada("push", str(project), "--no-wait")
    foreign, absent = eve("env", "info", "ada/digit-sum", exits=3), eve("env", "info", "ada/digit-max", exits=3)
    assert foreign.replace("digit-sum", "x") == absent.replace("digit-max", "x")
    assert eve.json("env", "list")["data"] == []
    assert [row["name"] for row in ada.json("env", "list")["data"]] == ["digit-sum"]


def test_an_installer_takes_a_public_environment_from_the_index(person, project, tmp_path):
    ada = person("ada")
    ada("push", str(project), "--no-wait", "--visibility", "PUBLIC")
    index = ada.json("env", "info", "ada/digit-sum")["data"]["install_index_url"]
    target = tmp_path / "site"
    installer = [shutil.which("uv") or str(Path(sys.executable).parent / "uv"), "pip", "install", "--no-config", "--no-deps"]
    where = ["--python", sys.executable, "--index-url", index, "--target", str(target), "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run([*installer, *where, "digit_sum"], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert (target / "digit_sum" / "__init__.py").is_file()


def test_a_login_is_approved_elsewhere(person, origin, tmp_path):
    ada, terminal = person("ada"), Prime(tmp_path / "terminal", origin)
    logging_in = terminal.start("login", "--headless")
    code = ""
    while not code:
        line = logging_in.stderr.readline()
        assert line, "the login ended before it showed a code"
        code = line.partition("challenge?code=")[2].strip()
    approve(origin, ada, code)
    out, err = logging_in.communicate(timeout=DEADLINE_S)
    assert logging_in.returncode == 0, out + err
    assert terminal.json("whoami")["data"]["slug"] == "ada"


def approve(origin: str, prime: Prime, code: str) -> None:
    import httpx

    key = json.loads((Path(prime.environ["HOME"]) / ".prime" / "config.json").read_text())["api_key"]
    answer = httpx.post(
        f"{origin}/api/v1/auth_challenge/approve", json={"challenge": code}, headers={"Authorization": f"Bearer {key}"}
    )
    assert answer.status_code == 204, answer.text


def test_keys_teams_and_the_wallet(person):
    ada = person("ada")
    made = ada.json("keys", "create", "ci")
    ada.environ |= {"PRIME_API_KEY": made["key"]}
    assert made["id"] in [row["id"] for row in ada.json("keys", "list")["items"]]
    ada("keys", "revoke", made["id"], "-y")
    assert "prime login" in ada("keys", "list", exits=5)
    del ada.environ["PRIME_API_KEY"]

    before = ada.json("wallet")["balance_usd"]
    ada("wallet", "top-up", "5")
    assert ada.json("wallet")["balance_usd"] == before + 5
    assert ada.json("wallet", "usage")["items"] == []

    team = ada.json("teams", "create", "Lab", "--slug", "lab")["data"]
    ada("teams", "switch", "lab")
    assert [row["role"] for row in ada.json("teams", "members")["data"]] == ["ADMIN"]
    assert ada.json("wallet")["team_id"] == team["id"]
    ada("switch", "personal")
    assert ada.json("wallet")["team_id"] != team["id"]


def test_a_run_is_refused_by_the_name_of_its_field(person, tmp_path):
    make_pool()
    ada = person("ada")
    ada("wallet", "top-up", "5")
    config = tmp_path / "run.toml"
    config.write_text('model = "tiny"\n[[env]]\nid = "ada/nothing"\n')
    assert "max_stepz" in ada("train", str(config), "--max_stepz", "3", "-y", exits=1)
    assert "batch_size" in ada("train", str(config), "--batch_size", "7", "-y", exits=1)
    assert "tiny" in ada("models")


def test_a_dead_server_is_named(tmp_path):
    lonely = Prime(tmp_path / "lonely", "http://127.0.0.1:9")
    assert "http://127.0.0.1:9" in lonely("whoami", exits=1)


def test_a_dataset_is_pushed_listed_and_shown_with_its_report(person, tmp_path):
    ada, file = person("ada"), tmp_path / "Sums.jsonl"
    good = '{"prompt": "1+1", "completion": "2"}\n'
    file.write_text(good * 3 + "{}\n")
    refused = ada("datasets", "push", str(file), exits=1)
    assert "3 of 4 rows are kept, 1 dropped (line 4: a row has messages" in " ".join(refused.split())
    made = ada.json("datasets", "push", str(file), "--dropped-max", "0.5")
    assert (made["report"]["kept"], made["report"]["problems"][0]["line"]) == (3, 4)
    assert [row["name"] for row in ada.json("datasets", "list")["datasets"]] == ["sums"]
    again = ada.json("datasets", "push", str(file), "--dropped-max", "0.5")
    assert again == ada.json("datasets", "show", "sums"), "sending it again changes nothing"
    assert "line 4" in ada("datasets", "show", "sums") + ada("datasets", "show", "nothing", exits=3)
    assert ada.json("datasets", "delete", "sums", "-y") == {"dataset": "sums", "deleted": True}
    assert ada.json("datasets", "list")["datasets"] == []


def test_a_published_evaluation_stands_in_everybodys_table_of_its_environment(origin, tmp_path):
    member = make_member("ada")
    ada, eve = keyed(member, origin, tmp_path), keyed(make_member("eve"), origin, tmp_path)
    make_release(member, visibility=Visibility.PUBLIC, verdict=GREEN.model_copy(update={"compatibility": SEEN}))
    made = {model: ada.json("eval", "push", str(results(tmp_path / model, model)), *more) for model, more in MODELS.items()}

    def ranked(text: str) -> list[str]:
        return [model for model in MODELS if re.search(rf"^{model} +ada +0.5 ", text, re.M)]

    assert ranked(ada("env", "info", "ada/digit-sum")) == ["small", "large"]
    assert ranked(eve("env", "info", "ada/digit-sum")) == ["large"]
    ada("eval", "publish", made["small"]["evaluation_id"], "-y")
    ada("eval", "publish", made["large"]["evaluation_id"], "--take-back")
    told = eve("env", "info", "ada/digit-sum")
    assert ranked(told) == ["small"]
    facts = dict(re.findall(r"^([a-z ]+?)  +(.+?) *$", told, re.M))
    assert facts["environment"] == "ada/digit-sum" and facts["badge"] == "GREEN" and facts["visibility"] == "public"
    assert facts["good for"] == "evaluation and training" and facts["agents"] == "judge, player"


@pytest.mark.parametrize("words", [("train", "{config}", "-y"), ("eval", "run", "ada/sums", "-m", "tiny")])
def test_a_job_with_an_empty_wallet_ends_with_an_exit_code_of_its_own(person, tmp_path, words):
    """CASES 40(f): a pipeline that cannot pay is red, and says why."""
    make_pool()
    ada, config = person("ada"), tmp_path / "run.toml"
    config.write_text('model = "tiny"\n[[env]]\nid = "ada/sums"\n')
    said = ada(*(word.format(config=config) for word in words), exits=4)
    assert "prime wallet top-up" in said
    assert ada.json("train", "list")["runs"] == [] and ada.json("eval", "list")["evaluations"] == []


def test_a_log_longer_than_any_window_is_followed_without_gap_or_repeat(origin, tmp_path):
    """CASES 40(g), from the table to the terminal."""
    make_pool()
    member = make_funded_member("ada")
    prime = keyed(member, origin, tmp_path)
    run = make_run(member)
    with acting_for(member.team_id):
        first = run.events_count + 1
        told = {"run": run, "team_id": run.team_id, "segment": 1, "attempt": 1, "kind": "log", "at": now()}
        lines = [RunEvent(seq=first + number, payload={"message": f"line {number}"}, **told) for number in range(LINES)]
        RunEvent.objects.bulk_create(lines)
        Run.objects.filter(id=run.id).update(events_count=run.events_count + LINES)
        stop_run(actor=member.actor, run_id=run.id)
    events = [json.loads(line) for line in prime("train", "logs", run.id, "-f", "-o", "json").splitlines()]
    assert [event["seq"] for event in events] == list(range(1, first + LINES + 1))

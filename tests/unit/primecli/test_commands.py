"""Commands against a server in memory: what they ask for, what they print, and how they exit."""

import json
import re

import httpx
import pytest

from primecli.packaging import write_push_record
from tests.unit.primecli.stub_server import StubServer, events, problem

TOML = """
model = "tiny"
max_steps = 40
[sampling]
max_tokens = 16
[[env]]
id = "ada/digit-sum@0.1.0"
"""
RUN = {
    "id": "crun",
    "name": "digits",
    "userId": "cuser",
    "status": "QUEUED",
    "baseModel": "tiny",
    "maxSteps": 2,
    "createdAt": "2026-11-29T10:00:00Z",
    "updatedAt": "2026-11-29T10:00:00Z",
    "effectiveConfig": {"max_steps": 2, "learning_rate": 0.0001},
}
MODELS = {
    "models": [
        {"name": "tiny", "trainingPricePerMtok": 0.06, "inferenceInputPricePerMtok": 0.02, "inferenceOutputPricePerMtok": 0.06}
    ]
}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(TOML)
    return str(path)


@pytest.fixture
def training(server: StubServer) -> StubServer:
    server.routes |= {
        ("GET", "/api/v1/rft/models"): MODELS,
        ("POST", "/api/v1/rft/runs"): {"run": RUN},
        ("GET", "/api/v1/rft/runs/crun"): {"run": RUN},
    }
    return server


def test_models_tells_the_limits_that_a_refusal_points_to(server):
    server.routes["GET", "/api/v1/rft/models"] = {"models": [MODELS["models"][0] | {"contextTokens": 2048, "rankMax": 64}]}
    heads, row = (re.split(r"  +", line.strip()) for line in server.run("models").stdout.splitlines() if line.strip())
    told = dict(zip(heads, row, strict=True))
    assert (told["context"], told["highest rank"]) == ("2048", "64")


def test_a_folder_that_was_pushed_under_another_account_says_so(server, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "sums"\nversion = "0.1.0"\n')
    (tmp_path / "sums.py").touch()
    write_push_record(tmp_path, {"owner": "ada"})
    refused = server.run("push", str(tmp_path))
    assert refused.exit_code == 3
    assert "pushed to or pulled from ada before; --owner names yours" in " ".join(refused.stderr.split())
    assert "pulled" not in server.run("push", str(tmp_path), "--owner", "me").stderr


class TestEnvironmentNames:
    BADGE = {"data": {"version": "0.1.0", "badge": "GREEN", "verdict": None}}

    def test_a_name_alone_is_ones_own(self, server):
        server.routes |= {
            ("GET", "/api/v1/user/whoami"): {"data": {"slug": "ada"}},
            ("GET", "/api/v1/environmentshub/ada/digit-sum/@latest/badge"): self.BADGE,
        }
        done = server.run("env", "status", "digit-sum")
        assert done.exit_code == 0, done.output
        assert "GREEN" in done.stdout

    def test_it_is_the_acting_teams_where_one_acts_for_a_team(self, server):
        server.routes |= {
            ("GET", "/api/v1/user/teams"): {"data": [{"teamId": "cteam", "slug": "lab"}]},
            ("GET", "/api/v1/environmentshub/lab/digit-sum/@0.1.0/badge"): self.BADGE,
        }
        assert server.run("env", "status", "digit-sum@0.1.0", PRIME_TEAM_ID="cteam").exit_code == 0

    def test_a_team_that_one_left_is_told_with_the_way_out(self, server):
        server.routes["GET", "/api/v1/user/teams"] = {"data": []}
        done = server.run("env", "status", "digit-sum", PRIME_TEAM_ID="cteam")
        assert done.exit_code == 3
        assert "prime switch personal" in done.stderr

    def test_deleting_one_release_is_refused_since_it_would_remove_all(self, server):
        done = server.run("env", "delete", "ada/digit-sum@0.1.0", "-y")
        assert done.exit_code == 2
        assert not server.requests


class TestTrain:
    def test_a_file_with_overrides_becomes_one_request(self, training, config):
        done = training.run("train", config, "--max_steps", "2", "--env.0.args.low", "1", "-y")
        assert done.exit_code == 0, done.output
        assert training.body() == {
            "model": {"name": "tiny"},
            "max_steps": 2,
            "max_tokens": 16,
            "environments": [{"id": "ada/digit-sum", "version": "0.1.0", "args": {"low": 1}}],
        }
        assert "set max_steps = 2" in done.stderr and "set env.0.args.low = 1" in done.stderr
        assert "learning_rate" in done.stdout
        assert "/runs/crun" in done.stderr

    def test_prices_come_before_the_question(self, training, config):
        done = training.run("train", config)
        assert done.exit_code == 1
        assert "$0.06 training" in done.stderr
        assert not any(request.method == "POST" for request in training.requests)

    def test_json_is_the_servers_reply_and_nothing_else(self, training, config):
        done = training.run("train", config, "-y", "-o", "json")
        assert json.loads(done.stdout) == {"run": RUN}

    def test_refused_fields_are_listed_by_name(self, training, config):
        detail = [{"loc": ["body", "max_stepz"], "msg": "Extra inputs are not permitted", "type": "extra_forbidden"}]
        training.routes["POST", "/api/v1/rft/runs"] = problem(422, detail, "invalid")
        done = training.run("train", config, "--max_stepz", "3", "-y")
        assert done.exit_code == 1
        assert "max_stepz: Extra inputs are not permitted" in done.stderr

    @pytest.mark.parametrize(("status", "exit_code"), [(402, 4), (401, 5), (404, 3)])
    def test_exit_codes(self, training, config, status, exit_code):
        training.routes["POST", "/api/v1/rft/runs"] = problem(status, "no")
        assert training.run("train", config, "-y").exit_code == exit_code

    def test_a_stray_word_is_a_usage_error(self, training, config):
        done = training.run("train", config, "stray", "-y")
        assert done.exit_code == 2 and "stray" in done.output

    def test_a_missing_file_is_a_usage_error(self, training):
        done = training.run("train", "nope.toml", "-y")
        assert done.exit_code == 2 and "nope.toml" in done.output

    def test_secrets_come_from_the_shell_and_never_on_screen(self, training, config):
        done = training.run("train", config, "-y", "-e", "TOKEN", "-e", "OTHER=v", TOKEN="s3cret")
        assert training.body()["secrets"] == [{"key": "TOKEN", "value": "s3cret"}, {"key": "OTHER", "value": "v"}]
        assert "s3cret" not in done.output

    def test_force_is_said_to_the_server(self, training, config):
        training.run("train", config, "-y", "--force")
        assert training.requests[-1].url.params["force"] == "true"

    def test_following_prints_events_and_exits_with_the_outcome(self, training, config):
        step = {"seq": 2, "kind": "step", "step": 1, "at": "2026-11-29T10:00:01Z", "payload": {"metrics": {"reward": 0.5}}}
        state = {"seq": 3, "kind": "state", "step": None, "at": "2026-11-29T10:00:02Z", "payload": {"state": "COMPLETED"}}
        training.routes["GET", "/api/v1/rft/runs/crun/events"] = events(("2", step), ("3", state), ("", ""))
        training.routes["GET", "/api/v1/rft/runs/crun"] = {"run": RUN | {"status": "COMPLETED"}}
        done = training.run("train", config, "-y", "--follow")
        assert done.exit_code == 0, done.output
        assert "reward 0.5" in done.stdout and "COMPLETED" in done.stdout

    def test_the_numbers_of_one_environment_are_its_parts_and_metrics(self, training):
        words = {"reward/ann/words": 0.75, "reward_part/ann/words/group/longest": 1.0, "metric/ann/words/letters": 4.0}
        rows = [{"step": 1, "reward": 0.5, "loss": 0.1, "reward_part/sums/right": 0.25, "reward/sums": 0.25} | words]
        training.routes["GET", "/api/v1/rft/runs/crun/metrics"] = {"metrics": rows}
        done = training.run("train", "metrics", "crun", "--env", "ann/words")
        assert [line.split() for line in done.stdout.splitlines()] == [
            ["step", "reward", "group/longest", "letters"],
            ["1", "0.75", "1", "4"],
        ]
        assert training.run("train", "metrics", "crun").stdout.split() == ["step", "reward", "loss", "1", "0.5", "0.1"]
        assert training.run("train", "metrics", "crun", "--env", "words").stdout == done.stdout, "without its owner"
        missed = training.run("train", "metrics", "crun", "--env", "word")
        assert missed.exit_code == 2 and "there are ann/words, sums" in " ".join(missed.output.replace("│", " ").split())

    def test_a_failed_run_is_exit_code_6_with_its_reason(self, training, config):
        training.routes["GET", "/api/v1/rft/runs/crun/events"] = events(("", ""))
        training.routes["GET", "/api/v1/rft/runs/crun"] = {"run": RUN | {"status": "FAILED", "errorMessage": "import failed"}}
        done = training.run("train", config, "-y", "--follow", "-o", "json")
        assert done.exit_code == 6
        assert json.loads(done.stdout.strip().splitlines()[-1])["run"]["status"] == "FAILED"
        assert "import failed" in json.loads(done.stderr.strip().splitlines()[-1])["error"]["message"]

    def test_following_a_run_that_is_paused_says_how_to_go_on_and_ends(self, training):
        states = ["PAUSED", "RUNNING", "PAUSED"]
        frames = [
            (str(seq), {"seq": seq, "kind": "state", "step": None, "at": "2026-11-29T10:00:01Z", "payload": {"state": state}})
            for seq, state in enumerate(states, 1)
        ]
        training.routes |= {
            ("GET", "/api/v1/rft/runs/crun/events"): events(*frames),
            ("GET", "/api/v1/rft/runs/crun/logs"): {"logs": "", "cursor": 3},
            ("GET", "/api/v1/rft/runs/crun"): {"run": RUN | {"status": "PAUSED"}},
        }
        done = training.run("train", "logs", "crun", "-f")
        assert done.exit_code == 0, done.output
        assert done.stdout.count("PAUSED") == 2, "the pause in its history was no end"
        assert "prime train resume crun" in done.stderr

    def test_a_run_that_failed_says_why_and_its_environments_words_can_be_chosen(self, training):
        line = {
            "timestamp": "2026-11-29T10:00:01Z",
            "level": "ERROR",
            "component": "environment",
            "message": "No module named 'x'",
        }
        reason = "ada/deep does not load: ModuleNotFoundError: No module named 'x' (deep/__init__.py:3)"
        training.routes |= {
            ("GET", "/api/v1/rft/runs/crun"): {"run": RUN | {"status": "FAILED", "errorMessage": reason}},
            ("GET", "/api/v1/rft/runs/crun/logs"): {"logs": json.dumps(line), "cursor": 1},
        }
        assert "deep/__init__.py:3" in training.run("train", "get", "crun", COLUMNS="200").stdout
        assert "environment: No module named 'x'" in training.run("train", "logs", "crun", "--env", "ada/deep").stdout
        assert training.requests[-1].url.params["env_name"] == "ada/deep"

    def test_verbs_are_not_taken_for_files(self, training):
        training.routes["GET", "/api/v1/rft/runs"] = {"runs": [RUN], "total": 1, "page": 1, "limit": 20, "total_pages": 1}
        done = training.run("train", "list")
        assert done.exit_code == 0 and "crun" in done.stdout

    @pytest.mark.parametrize("verb", ["stop", "restart", "pause", "resume"])
    def test_steering(self, training, verb):
        training.routes["PUT", f"/api/v1/rft/runs/crun/{verb}"] = {"run": RUN}
        options = ["-y"] if verb == "stop" else []
        assert training.run("train", verb, "crun", *options).exit_code == 0

    def test_rollouts_of_the_newest_step(self, training):
        training.routes["GET", "/api/v1/rft/runs/crun/progress"] = {"stepsWithSamples": [1, 9, 10]}
        sample = {"task": 3, "reward": 1.0, "completion": [{"role": "assistant", "content": "sum\n7"}]}
        training.routes["GET", "/api/v1/rft/runs/crun/samples"] = {"samples": [sample]}
        done = training.run("train", "rollouts", "crun")
        assert training.requests[-1].url.params["step"] == "10"
        assert "sum 7" in done.stdout


class TestEval:
    def test_following_waits_for_the_result(self, server):
        waiting = {"evaluation_id": "ceval", "status": "RUNNING", "total_samples": 3}
        over = {"evaluation_id": "ceval", "status": "COMPLETED", "avg_score": 0.5, "total_samples": 8}
        server.routes["POST", "/api/v1/hosted-evaluations"] = {"evaluation_id": "ceval", "status": "PENDING"}
        server.routes["GET", "/api/v1/evaluations/ceval"] = [waiting, over]
        done = server.run(
            "eval", "run", "ada/x@0.1.0", "-m", "tiny", "-n", "8", "-r", "2", "--max-tokens", "8", "-f", "-o", "json"
        )
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout) == over
        asked = json.loads(server.requests[0].content)
        assert asked["environment_ids"] == ["ada/x@0.1.0"] and asked["inference_model"] == "tiny"
        assert asked["eval_config"] == {"num_examples": 8, "rollouts_per_example": 2, "sampling_args": {"max_tokens": 8}}

    def test_another_model_plays_an_agent(self, server):
        server.routes["POST", "/api/v1/hosted-evaluations"] = {"evaluation_id": "ceval"}
        done = server.run("eval", "run", "ada/x", "-m", "tiny", "--seat", "user=tiny:cadapter", "--seat", "judge=tiny")
        assert done.exit_code == 0, done.output
        seats = {"user": {"model": {"name": "tiny:cadapter"}}, "judge": {"model": {"name": "tiny"}}}
        assert server.body(0)["eval_config"]["seats"] == seats
        assert server.run("eval", "run", "ada/x", "-m", "tiny", "--seat", "user").exit_code == 2

    def test_a_failed_evaluation_is_exit_code_6(self, server):
        server.routes["POST", "/api/v1/hosted-evaluations"] = {"evaluation_id": "ceval"}
        over = {"evaluation_id": "ceval", "status": "FAILED", "error_message": "no funds"}
        server.routes["GET", "/api/v1/evaluations/ceval"] = over
        done = server.run("eval", "run", "ada/x", "-m", "tiny", "--follow")
        assert done.exit_code == 6 and "no funds" in done.stderr

    def test_several_models_are_one_group_with_a_table_at_the_end(self, server):
        ids = ["c" + "a" * 24, "c" + "b" * 24]
        server.routes["POST", "/api/v1/hosted-evaluations"] = {
            "evaluation_id": ids[0],
            "evaluation_ids": ids,
            "group_id": "cgroup",
        }
        for eval_id, status in zip(ids, ("COMPLETED", "FAILED"), strict=True):
            over = {"evaluation_id": eval_id, "status": status, "model_name": eval_id[-1], "error_message": "refused"}
            server.routes["GET", f"/api/v1/evaluations/{eval_id}"] = over
        quality = {"mean": 0.5, "cost_usd": 0.1, "cost_per_sample_usd": 0.01, "duration_median_s": 1.0, "best_for_cost": True}
        rows = [
            {"evaluation": {"evaluation_id": one, "status": "COMPLETED", "model_name": one[-1]}, "quality": quality}
            for one in ids
        ]
        server.routes["GET", "/api/v1/evaluations/compare"] = {"evaluations": rows, "pairs": [], "notes": []}
        done = server.run("eval", "run", "ada/x", "-m", "a, b", "--group", "cgroup", "-f")
        assert server.body(0)["inference_models"] == ["a", "b"] and server.body(0)["group_id"] == "cgroup"
        assert done.exit_code == 6 and "the evaluation of b ended FAILED: refused" in done.stderr
        assert "$0.01" in done.stdout and f"/evaluations/compare?ids={ids[0]},{ids[1]}" in done.stderr

    def test_an_external_models_key_comes_from_the_shell_and_goes_as_a_secret(self, server):
        server.routes["POST", "/api/v1/hosted-evaluations"] = {"evaluation_id": "ceval"}
        options = [
            "eval",
            "run",
            "ada/x",
            "-m",
            "gpt",
            "--api-base-url",
            "https://api.example.com/v1",
            "--api-key-var",
            "THEIR_KEY",
        ]
        prices = ["--price-input", "1", "--price-output", "4"]
        assert server.run(*options, *prices, THEIR_KEY="sk-1").exit_code == 0
        sent = server.body(0)["eval_config"]
        assert (sent["api_base_url"], sent["api_key_var"]) == ("https://api.example.com/v1", "THEIR_KEY")
        assert sent["custom_secrets"] == {"THEIR_KEY": "sk-1"}
        assert sent["prices"] == {"input_usd_per_mtok": 1.0, "output_usd_per_mtok": 4.0}
        assert server.run(*options, THEIR_KEY="").exit_code == 0, "the team's own is meant"
        assert "custom_secrets" not in server.body()["eval_config"]
        assert server.run(*options, "--price-input", "1", THEIR_KEY="sk-1").exit_code == 2

    def test_publishing_asks_first_and_taking_back_does_not(self, server):
        server.routes["PUT", "/api/v1/evaluations/ceval"] = {"evaluation_id": "ceval", "is_public": True}
        asked = server.run("eval", "publish", "ceval")
        assert asked.exit_code == 1 and "everybody who may see its environment?" in asked.stderr
        assert server.requests == [], "nobody said yes"
        done = server.run("eval", "publish", "ceval", "-y", "-o", "json")
        assert json.loads(done.stdout) == {"evaluation_id": "ceval", "is_public": True}
        assert server.body() == {"is_public": True} and "is seen by everybody" in done.stderr
        back = server.run("eval", "publish", "ceval", "--take-back")
        assert back.exit_code == 0 and server.body() == {"is_public": False}
        assert "is seen by the team alone" in back.stderr and "/evaluations/ceval" in back.stderr

    @pytest.mark.parametrize(("option", "sent"), [((), None), (("--public",), True)])
    def test_a_hosted_one_is_published_from_its_start_only_if_asked(self, server, option, sent):
        server.routes["POST", "/api/v1/hosted-evaluations"] = {"evaluation_id": "ceval"}
        assert server.run("eval", "run", "ada/x", "-m", "tiny", *option).exit_code == 0
        assert server.body().get("is_public") is sent

    def test_arguments_that_are_no_object_are_refused(self, server):
        assert server.run("eval", "run", "ada/x", "-m", "tiny", "--env-args", "[1]").exit_code == 2


class TestMoneyKeysTeams:
    def test_the_wallet(self, server):
        row = {
            "last_billed_at": "2026-11-29T10:00:00Z",
            "amount_usd": 0.000012,
            "resource_type": "training",
            "resource_id": "crun",
        }
        server.routes["GET", "/api/v1/billing/wallet"] = {"balance_usd": 4.99, "total_billings": 1, "recent_billings": [row]}
        done = server.run("wallet")
        assert "$4.99" in done.stdout and "$0.000012" in done.stdout

    @pytest.mark.parametrize("amount", ["zero", "0", "-1", "nan", "inf"])
    def test_an_amount_that_is_none_is_a_usage_error(self, server, amount):
        assert server.run("wallet", "top-up", "--", amount).exit_code == 2
        assert server.requests == []

    def test_a_top_up_keeps_its_decimals(self, server):
        server.routes["POST", "/api/v1/billing/top-ups"] = {"status": "settled", "balance_usd": 9.99, "notice": "no real payment"}
        done = server.run("wallet", "top-up", "9.99")
        assert server.body() == {"amount_usd": "9.99"}
        assert "no real payment" in done.stdout

    def test_usage_of_one_subject(self, server):
        line = {"subject_kind": "run", "meter": "training_tokens", "model": "tiny", "quantity": 1000, "usd_per_million": "0.06"}
        lines = [line | {"subject_id": "crun", "amount_microusd": amount} for amount in (60, 70)]
        server.routes["GET", "/api/v1/billing/usage"] = {"total_microusd": 130, "items": lines, "next_cursor": "further"}
        done = server.run("wallet", "usage", "--id", "crun", "-n", "2")
        assert dict(server.requests[-1].url.params) == {"subject_id": "crun", "limit": "2"}
        assert "$0.00007" in done.stdout and "--cursor further" in done.output

    def test_prices(self, server):
        row = {"model": "", "meter": "sandbox_seconds", "version": 1, "usd_per_million": "14.000000000"}
        server.routes["GET", "/api/v1/billing/prices"] = {"prices": [row]}
        assert "$14.00" in server.run("wallet", "prices").stdout

    def test_a_runs_cost_names_what_is_not_counted_in_tokens(self, server):
        part = {"tokens": 10, "cost_usd": 0.000001}
        meters = [{"meter": "sandbox_seconds", "quantity": 78, "amount_microusd": 1092}, {"meter": "training_tokens"}]
        reply = {"run_id": "crun", "training": part, "inference": part, "total_cost_usd": 0.001094, "meters": meters}
        server.routes["GET", "/api/v1/billing/runs/crun/usage"] = reply
        done = server.run("train", "usage", "crun")
        assert "sandbox seconds" in done.stdout and "$0.001092" in done.stdout

    def test_a_new_key_is_shown_once(self, server):
        server.routes["POST", "/api/v1/keys"] = httpx.Response(
            201, json={"id": "ckey", "name": "ci", "key": "rsk_new", "scopes": None, "expires_at": None}
        )
        done = server.run("keys", "create", "ci")
        assert "rsk_new" in done.stdout and "only time" in done.stderr

    def test_switching_is_remembered(self, server):
        team = {"teamId": "cteam", "name": "Lab", "slug": "lab", "role": "ADMIN", "createdAt": "2026-11-29T10:00:00Z"}
        server.routes["GET", "/api/v1/user/teams"] = {"data": [team], "total_count": 1}
        server.routes["GET", "/api/v1/keys"] = {"items": []}
        assert server.run("teams", "switch", "lab").exit_code == 0
        server.run("keys", "list")
        assert server.requests[-1].headers["x-prime-team-id"] == "cteam"
        server.run("switch", "personal")
        server.run("keys", "list")
        assert "x-prime-team-id" not in server.requests[-1].headers

    def test_a_foreign_team_is_exit_code_3(self, server):
        server.routes["GET", "/api/v1/user/teams"] = {"data": [], "total_count": 0}
        assert server.run("switch", "theirs").exit_code == 3


class TestAccounts:
    def test_signing_up_stores_the_key_and_says_the_password_it_made(self, server):
        user = {"id": "cuser", "name": "Ada", "slug": "ada", "email": "ada@example.org"}
        server.routes["POST", "/api/v1/auth/sign-up"] = {"user": user, "teams": [], "csrf_token": "x", "api_key": "rsk_first"}
        server.routes["GET", "/api/v1/user/whoami"] = {"data": user}
        done = server.run("sign-up", "--email", "ada@example.org", "-o", "json", PRIME_API_KEY="")
        assert done.exit_code == 0, done.output
        made = json.loads(done.stdout)
        assert made["api_key"] == "rsk_first" and len(made["password"]) >= 20
        assert server.requests[-1].headers["authorization"] == "Bearer rsk_first"
        stored = json.loads((server.home / ".prime" / "config.json").read_text())
        assert stored["api_key"] == "rsk_first" and stored["user_slug"] == "ada"

    def test_logging_in_decrypts_the_key(self, server, monkeypatch):
        monkeypatch.setattr("primecli.commands.auth.POLL_S", 0)
        sealed = {}

        def generate(request):
            sealed["key"] = seal(json.loads(request.content)["encryptionPublicKey"], "rsk_login")
            return httpx.Response(200, json={"challenge": "ABCD", "status_auth_token": "t"})

        replies = iter([{"result": None}, None])
        server.routes["POST", "/api/v1/auth_challenge/generate"] = generate
        server.routes["GET", "/api/v1/auth_challenge/status"] = lambda request: httpx.Response(
            200, json=next(replies) or {"result": sealed["key"]}
        )
        server.routes["GET", "/api/v1/user/whoami"] = {"data": {"id": "cuser", "name": "Ada", "slug": "ada"}}
        done = server.run("login", "--headless", PRIME_API_KEY="")
        assert done.exit_code == 0, done.output
        assert "code=ABCD" in done.stderr and "rsk_login" not in done.output
        assert json.loads((server.home / ".prime" / "config.json").read_text())["api_key"] == "rsk_login"

    def test_an_expired_code_is_exit_code_5(self, server):
        server.routes["POST", "/api/v1/auth_challenge/generate"] = {"challenge": "ABCD", "status_auth_token": "t"}
        assert server.run("login", "--headless").exit_code == 5


def seal(public_pem: str, text: str) -> str:
    import base64

    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding

    scheme = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)
    return base64.b64encode(serialization.load_pem_public_key(public_pem.encode()).encrypt(text.encode(), scheme)).decode()


class TestServing:
    ADAPTER = {"id": "cad", "baseModel": "tiny", "rftRunId": "crun", "step": 40, "status": "READY", "deploymentError": None}

    def test_deploying_waits_until_it_is_served(self, server):
        states = [{"adapter": self.ADAPTER | {"deploymentStatus": state}} for state in ("DEPLOYING", "DEPLOYED")]
        server.routes["POST", "/api/v1/rft/adapters/cad/deploy"] = states[0]
        server.routes["GET", "/api/v1/rft/adapters/cad"] = list(states)
        done = server.run("deployments", "create", "cad")
        assert done.exit_code == 0 and "tiny:cad" in done.stdout

    def test_a_failed_deployment_is_exit_code_6(self, server):
        failed = {"adapter": self.ADAPTER | {"deploymentStatus": "DEPLOY_FAILED", "deploymentError": "rank 64"}}
        server.routes["POST", "/api/v1/rft/adapters/cad/deploy"] = failed
        server.routes["GET", "/api/v1/rft/adapters/cad"] = failed
        done = server.run("deploy", "cad")
        assert done.exit_code == 6 and "rank 64" in done.stderr

    def test_a_chat_prints_the_answer(self, server):
        reply = {"choices": [{"message": {"role": "assistant", "content": "sum [7]"}}]}
        server.routes["POST", "/api/inference/v1/chat/completions"] = reply
        assert server.run("chat", "tiny", "3+4?").stdout == "sum [7]\n"

    def test_a_stream_prints_tokens_as_they_come(self, server):
        chunks = [{"choices": [{"delta": {"content": text}}]} for text in ("su", "m 7")]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        server.routes["POST", "/api/inference/v1/chat/completions"] = httpx.Response(200, content=text.encode())
        assert server.run("chat", "tiny", "3+4?", "--stream").stdout == "sum 7\n"

    def test_errors_of_the_gateway_are_told(self, server):
        server.routes["POST", "/api/inference/v1/chat/completions"] = httpx.Response(
            404, json={"error": {"message": "no model 'x'", "type": "invalid_request_error", "code": "model_not_found"}}
        )
        done = server.run("chat", "x", "hi")
        assert done.exit_code == 3 and "no model 'x'" in done.stderr

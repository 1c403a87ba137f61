"""The containers against the code: every command runs, every variable is one that is read, ports and health addresses agree.

No registry is asked and nothing is started: images are built by hand (docs/operations.md says which were).
"""

import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import compose_spec
import pytest
import yaml
from django.conf import settings
from django.test import override_settings

from controlplane.settings.env import Environment
from tests.fixtures.places import REPOSITORY
from trainer.contracts.catalogue import load_catalogue
from trainer.inference.base_model import BaseModel
from trainer.inference.vllm import __main__ as vllm_front
from trainer.inference.vllm.command import VARIABLES, server_arguments
from trainer.service import __main__ as trainer_service

COMPOSE = REPOSITORY / "docker-compose.yml"
DOCKERFILES = sorted((REPOSITORY / "infra" / "docker").glob("*ockerfile"))
EXAMPLE = REPOSITORY / "infra" / "docker" / "env.example"
DOCUMENT: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
SERVICES: dict[str, dict[str, Any]] = DOCUMENT["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("rootstock/")}
BY_LIBRARIES = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "OMP_NUM_THREADS", "OMP_WAIT_POLICY"}
"""Read by boto3 and by torch, not by us."""
BY_COMPOSE = {"COMPOSE_PROJECT_NAME", "COMPOSE_PROFILES"}
PLACEHOLDER = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


class NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def filled(value: str) -> str:
    """A text as compose would fill it in from an empty environment."""
    return PLACEHOLDER.sub(lambda match: match[3] if match[2] == "-" else "x" * 40, value)


RESOLVED = filled(yaml.dump(DOCUMENT, Dumper=NoAliases))
"""The file as one plain document: anchors followed, variables filled in."""


def command(name: str) -> list[str]:
    given = SERVICES[name]["command"]
    return [filled(part) for part in (shlex.split(given) if isinstance(given, str) else given)]


def flag(arguments: list[str], name: str) -> str:
    return arguments[arguments.index(name) + 1]


def test_the_file_follows_the_compose_specification():
    checked = compose_spec.PyCompose.from_yaml(RESOLVED)
    checked.validate()
    assert set(checked.services) == set(SERVICES)


def test_the_specification_check_refuses_what_is_misspelt():
    with pytest.raises(Exception, match="heathcheck"):
        compose_spec.PyCompose.from_yaml(RESOLVED.replace("healthcheck:", "heathcheck:", 1)).validate()


@pytest.mark.parametrize("profile", ["cpu", "gpu"])
def test_compose_itself_accepts_the_file(profile, tmp_path):
    program = compose_program()
    if program is None:
        pytest.skip("neither `docker compose` nor `docker-compose` is installed")
    variables = re.sub(r"=$", "=" + "x" * 40, EXAMPLE.read_text(), flags=re.M).replace("PROFILES=cpu", f"PROFILES={profile}")
    (tmp_path / ".env").write_text(variables)
    arguments = [*program, "--env-file", str(tmp_path / ".env"), "-f", str(COMPOSE), "config"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60, env=bare_environment())
    assert done.returncode == 0, done.stderr
    assert set(yaml.safe_load(done.stdout)["services"]) <= set(SERVICES)


def compose_program() -> list[str] | None:
    if shutil.which("docker"):
        asked = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False, timeout=60)
        if asked.returncode == 0:
            return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else None


def bare_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}


def test_every_variable_of_our_containers_is_one_that_the_code_reads():
    documented = {str(field.alias) for field in Environment.model_fields.values()}
    unknown = {f"{name}: {variable}" for name, service in OURS.items() for variable in service.get("environment", {})}
    assert {entry for entry in unknown if entry.split(": ")[1] not in documented | BY_LIBRARIES} == set()


@pytest.mark.parametrize("name", ["migrate", "web", "internal", "worker", "beat"])
def test_the_variables_of_a_service_make_valid_settings(name):
    given = {variable: filled(str(value)) for variable, value in SERVICES[name]["environment"].items()}
    read = Environment.read(given | {"ROOTSTOCK_PUBLIC_ORIGIN": "https://lab.example.com"})
    assert read.public_origin == "https://lab.example.com" and read.database_url == given["DATABASE_URL"]


def test_the_worker_has_what_starting_attempts_needs():
    needed = {"INTERNAL_URL", "POOL_TOKEN", "RUNNER_DIR", "LOG_DIR"}
    source = (REPOSITORY / "workers" / "launching.py").read_text()
    assert set(re.findall(r'required\("(\w+)"\)', source)) == needed, "this test lists what `launching` asks for"
    assert {f"ROOTSTOCK_{name}" for name in needed} <= set(SERVICES["worker"]["environment"])


def test_only_migrations_hold_the_owner_of_the_tables():
    assert [name for name, service in OURS.items() if "DATABASE_ADMIN_URL" in service.get("environment", {})] == ["migrate"]


def test_the_example_fills_every_required_variable_and_nothing_else():
    example = {line.split("=")[0] for line in EXAMPLE.read_text().splitlines() if "=" in line and not line.startswith("#")}
    found = PLACEHOLDER.findall(COMPOSE.read_text())
    assert {name for name, kind, _ in found if kind == "?"} <= example
    assert example <= {name for name, _, _ in found} | BY_COMPOSE
    assert all(kind for _, kind, _ in found), "each variable has a default or stops compose with its name"


@pytest.mark.parametrize("name", ["web", "internal"])
def test_the_served_applications_exist(name):
    module, attribute = command(name)[1].split(":")
    # The internal application chooses its routes as it is imported; other tests of this process want the public ones.
    with override_settings(ROOT_URLCONF=settings.ROOT_URLCONF):
        assert hasattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize(("name", "module"), [("trainer", trainer_service), ("inference-vllm", vllm_front)])
def test_the_flags_of_the_model_services_parse(name, module):
    arguments = command(name)
    assert arguments[:2] == ["python", "-m"] and importlib.util.find_spec(arguments[2])
    assert module.parse(arguments[3:]).model == "tiny"


def test_the_flags_of_the_engine_parse(monkeypatch):
    from trainer.inference import __main__ as engine  # reads sys.argv, so it is given one here

    monkeypatch.setattr("sys.argv", ["engine", *command("inference")[3:]])
    assert engine._arguments().port == 8200


def test_the_flags_of_celery_parse():
    from workers.app import app  # needs the settings, which the fixtures bring

    for name in ("worker", "beat"):
        assert command(name)[:4] == ["celery", "-A", "workers.app", name]
        options = {option for parameter in _celery_command(name).params for option in parameter.opts}
        assert {part for part in command(name)[4:] if part.startswith("-")} <= options
    assert app.main


def _celery_command(name: str) -> Any:
    from celery.bin.celery import celery  # the command line of the pinned version

    return celery.commands[name]


def test_the_migrate_job_runs_commands_that_exist():
    text = command("migrate")[-1]
    assert "python -m workers.embedded.database" in text and importlib.util.find_spec("workers.embedded.database")
    assert set(re.findall(r"--[a-z-]+", text)) == {"--pool", "--model", "--trainer-url", "--inference-url", "--engine"}
    assert importlib.util.find_spec("controlplane.core.management.commands." + text.split()[-1])


def test_ports_and_addresses_agree():
    ports = {name: int(flag(command(name), "--port")) for name in ("web", "internal", "trainer", "inference", "inference-vllm")}
    assert ports["inference"] == ports["inference-vllm"]
    addresses = re.findall(r"http://([a-z0-9.-]+):(\d+)", PLACEHOLDER.sub("", COMPOSE.read_text()))
    known = ports | {"objects": 8333, "vllm": 8000}
    assert {(host, int(port)) for host, port in addresses if host != "127.0.0.1"} <= set(known.items())
    for name, port in ports.items():
        assert f"http://127.0.0.1:{port}/" in " ".join(SERVICES[name]["healthcheck"]["test"])
    assert SERVICES["web"]["ports"] == [f"${{ROOTSTOCK_WEB_PORT:-{ports['web']}}}:{ports['web']}"]


def test_health_addresses_are_routes():
    paths = {name: _health_path(name) for name in ("web", "internal", "trainer", "inference", "inference-vllm")}
    assert paths == {"web": "/healthz", "internal": "/healthz"} | dict.fromkeys(
        ("trainer", "inference", "inference-vllm"), "/health"
    )
    assert 'path("healthz"' in (REPOSITORY / "platform/controlplane/web/urls.py").read_text()
    assert 'path("healthz"' in (REPOSITORY / "platform/controlplane/urls_internal.py").read_text()
    assert '"/health"' in (REPOSITORY / "trainer/inference/server.py").read_text()
    assert '"/health"' in (REPOSITORY / "trainer/service/app.py").read_text()


def _health_path(name: str) -> str:
    found = re.search(r"http://127\.0\.0\.1:\d+(/\w+)", " ".join(SERVICES[name]["healthcheck"]["test"]))
    assert found
    return found[1]


def test_our_containers_run_as_nobody_in_particular_on_a_read_only_disk():
    for name, service in OURS.items():
        assert service["user"] == "10001:10001" and service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"] and "no-new-privileges:true" in service["security_opt"], name
        assert not service.get("privileged"), name


def test_every_service_has_limits_and_the_long_lived_ones_a_health_check():
    for name, service in SERVICES.items():
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}, name
        once = service.get("restart") == "no"
        assert once or "healthcheck" in service or name == "beat", name


def test_volumes_and_dependencies_are_declared():
    mounts = {mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])}
    assert mounts == set(DOCUMENT["volumes"])
    for service in SERVICES.values():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in SERVICES
            assert how["condition"] != "service_healthy" or "healthcheck" in SERVICES[needed]


def test_vllm_is_started_as_the_code_would_start_it():
    tiny = BaseModel.of(load_catalogue()["tiny"])
    ours = server_arguments(tiny, host="0.0.0.0", port=8000, dtype="bfloat16", adapters_per_batch=32)
    given = [part for argument in command("vllm") for part in argument.split("=", 1)]
    where = ours.index("--model") + 1
    ours[where] = "/app/trainer/models/" + str(tiny.weights.relative_to(tiny.weights.parents[1]))
    assert given == ours
    assert SERVICES["vllm"]["environment"] == VARIABLES


def test_nothing_but_the_routes_in_front_reaches_vllm():
    assert [name for name, service in SERVICES.items() if "engine" in service.get("networks", [])] == ["inference-vllm", "vllm"]
    assert SERVICES["vllm"]["networks"] == ["engine"] and DOCUMENT["networks"]["engine"]["internal"] is True


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_every_copied_file_exists_and_is_in_the_build_context(dockerfile: Path):
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile.read_text(), flags=re.M):
        for source in line.split()[:-1]:
            assert (REPOSITORY / source).exists(), source
            assert any(source == kept[1:] or source.startswith(kept[1:] + "/") for kept in ignored if kept.startswith("!")), (
                source
            )


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.name)
def test_bases_are_arguments_and_images_do_not_run_as_root(dockerfile: Path):
    text = dockerfile.read_text()
    stages = set(re.findall(r"^FROM \S+ AS (\w+)$", text, flags=re.M))
    for base in re.findall(r"^FROM (\S+)", text, flags=re.M):
        assert base in stages or re.fullmatch(r"\$\{\w+\}", base), base
    for stage in re.split(r"^FROM ", text, flags=re.M)[1:]:
        users = re.findall(r"^USER (\S+)$", stage, flags=re.M)
        assert users[-1:] == ["10001:10001"] or re.search(r"AS (dashboard|packages)\n", stage), stage.splitlines()[0]


def test_images_are_built_from_targets_that_exist():
    for name, service in OURS.items():
        build = service["build"]
        text = (REPOSITORY / build["dockerfile"]).read_text()
        assert f" AS {build['target']}\n" in text, name


def test_requirements_follow_the_project_file(tmp_path):
    program = [shutil.which("python3") or "python3", str(REPOSITORY / "infra" / "docker" / "requirements.py")]

    def printed(*arguments: str) -> list[str]:
        done = subprocess.run(
            [*program, str(REPOSITORY / "pyproject.toml"), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    everything = printed("server", "trainer")
    assert printed("trainer", "--torch") == ["torch==2.13.0"]
    assert not any(need.startswith("torch=") for need in everything) and len(everything) == len(set(everything))
    assert any(need.startswith("django>=") for need in everything)

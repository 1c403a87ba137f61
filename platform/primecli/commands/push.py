"""`prime push` and `prime pull`: an environment's folder to the hub and back.

The order of calls is the wire's: resolve, wheel (create, PUT, finalize), version (create, PUT, finalize). The hub then checks the
release in a sandbox; `push` waits for that verdict unless told not to.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from rich.progress import Progress

from primecli.commits import commit_of
from primecli.environment_names import ENVIRONMENT_HELP, full_name
from primecli.output import CliError, ExitCode, OutputFormat, OutputOption
from primecli.packaging import (
    ARCHIVE_WARN_BYTES,
    Artefact,
    Project,
    build_source,
    build_wheel,
    bump_patch,
    read_project,
    read_push_record,
    refuse_secrets,
    source_hash,
    unpack_source,
    write_push_record,
)
from primecli.session import Session, session_of

CHUNK_BYTES = 64 * 1024
BADGE_POLL_S = 0.5
BADGE_DEADLINE_S = 600.0
HUB = "/environmentshub"


def push(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(help="Folder that holds pyproject.toml.", file_okay=False, exists=True)] = Path("."),
    visibility: Annotated[str | None, typer.Option("--visibility", "-v", help="PUBLIC or PRIVATE; new ones are private.")] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Push to this owner's name; default: the acting team's.")] = None,
    auto_bump: Annotated[bool, typer.Option("--auto-bump", help="Raise the last number of the version first.")] = False,
    runtime: Annotated[
        str | None, typer.Option("--runtime", help="VERIFIERS_V0 or VERIFIERS_V1, when not to be guessed.")
    ] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for the hub's check of the release.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Build an environment and publish it as an immutable release."""
    cli = session_of(ctx, output)
    root = path.resolve()
    if auto_bump:
        cli.terminal.note(f"version raised to {bump_patch(root)}")
    project = read_project(root)
    refuse_secrets(project)
    environment = _resolve(cli, project, visibility, owner)
    slug = f"{environment['owner']['name']}/{environment['name']}"
    release = _unchanged(cli, project, slug)
    if release:
        cli.terminal.note(f"nothing to push: this is {slug}@{project.version}")
    else:
        release = _Push(cli, project, environment, runtime or project.runtime_hint).send()
        cli.terminal.success(f"pushed {slug}@{project.version}")
    write_push_record(root, _record(environment, project, release))
    cli.show_page(f"/environments/{slug}")
    badge = {} if no_wait else wait_for_badge(cli, slug, project.version)
    cli.terminal.data({"environment": slug, "version": project.version, **release, **badge})
    report_badge(cli, badge)


def _unchanged(cli: Session, project: Project, slug: str) -> dict[str, Any] | None:
    """The release that this folder is already. One that was withdrawn does not count: the hub says why it takes it no more."""
    content_hash = source_hash(project)
    try:
        found = cli.client.get(f"{HUB}/{slug}/@{content_hash}")["data"]
    except CliError as error:
        if error.exit_code is ExitCode.NOT_FOUND:
            return None
        raise
    if found["yanked"] or found["quarantined"]:
        return None
    return {"content_hash": content_hash, "unchanged": True}


def pull(
    ctx: typer.Context,
    environment: Annotated[str, typer.Argument(help=ENVIRONMENT_HELP)],
    folder: Annotated[Path | None, typer.Argument(help="Where to; default: the environment's name.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Download the source of an environment."""
    cli = session_of(ctx, output)
    name, version = full_name(cli, environment)
    found = cli.client.get(f"{HUB}/{name}/@{version or 'latest'}")["data"]
    target = (folder or Path(found["name"])).resolve()
    with TemporaryDirectory() as scratch:
        files_count = unpack_source(download_source(cli, found, Path(scratch)), target)
    record = {
        "environment_id": found["id"],
        "owner": found["owner"]["name"],
        "name": found["name"],
        "version": found["semantic_version"],
    }
    write_push_record(target, record)
    cli.terminal.data({**record, "folder": str(target), "files": files_count, "content_hash": found["content_hash"]})
    cli.terminal.success(f"{files_count} files of {name}@{found['semantic_version']} in {target}")


def download_source(cli: Session, found: dict[str, Any], folder: Path) -> Path:
    """The source archive of a release, as its digest says."""
    archive = folder / "source.tar.gz"
    with archive.open("wb") as stream:
        for chunk in cli.client.download(found.get("tracked_package_url") or found["package_url"]):
            stream.write(chunk)
    if Artefact.of(archive).sha256 != found["sha256"]:
        raise CliError("the download does not match the release's sha256", code="corrupt_download")
    return archive


class _Push:
    """One release on its way: two artefacts, each created, uploaded and finalized, the wheel first."""

    def __init__(self, cli: Session, project: Project, environment: dict[str, Any], runtime_hint: str | None) -> None:
        self.cli, self.project, self.environment = cli, project, environment
        self.base = f"{HUB}/{environment['id']}"
        self.hint = {"runtime_hint": runtime_hint} if runtime_hint else {}

    def send(self) -> dict[str, Any]:
        with self.cli.terminal.progress() as progress:
            building = progress.add_task("building", total=None)
            wheel = build_wheel(self.project)
            content_hash = source_hash(self.project)
            source = build_source(self.project, content_hash)
            progress.remove_task(building)
            if source.size_bytes > ARCHIVE_WARN_BYTES:
                self.cli.terminal.note(f"the source archive is large: {source.size_bytes / 2**20:.0f} MiB", style="yellow")
            wheel_id = self._send_wheel(wheel, content_hash, progress)
            version_id = self._send_source(source, content_hash, progress)
        ids = {"wheel_id": wheel_id, "version_id": version_id, "wheel_sha256": wheel.sha256}
        return {"content_hash": content_hash, "unchanged": False, **ids}

    def _send_wheel(self, wheel: Artefact, content_hash: str, progress: Progress) -> str:
        metadata = self.project.metadata | {"original_filename": wheel.filename, "requires_dist": self.project.dependencies}
        body = self._declared(wheel, content_hash, metadata) | {"size": wheel.size_bytes}
        made = self.cli.client.post(f"{self.base}/wheels", body)["data"]
        if made.get("upload_url"):
            self._upload(wheel, made["upload_url"], progress)
            self.cli.client.post(f"{self.base}/wheels/{made['wheel_id']}/finalize")
        return str(made["wheel_id"])

    def _send_source(self, source: Artefact, content_hash: str, progress: Progress) -> str:
        filename = f"{self.project.name}-{self.project.version}.tar.gz"
        metadata = self.project.metadata | {"original_filename": filename, **commit_of(self.project.root)}
        made = self.cli.client.post(f"{self.base}/versions", self._declared(source, content_hash, metadata))["data"]
        self._upload(source, made["upload_url"], progress)
        self.cli.client.post(f"{self.base}/versions/{made['version_id']}/finalize")
        return str(made["version_id"])

    def _declared(self, artefact: Artefact, content_hash: str, metadata: dict[str, Any]) -> dict[str, Any]:
        return {
            "content_hash": content_hash,
            "filename": artefact.filename,
            "sha256": artefact.sha256,
            "semantic_version": self.project.version,
            "metadata": metadata,
            **self.hint,
        }

    def _upload(self, artefact: Artefact, url: str, progress: Progress) -> None:
        task = progress.add_task(f"uploading {artefact.filename}", total=artefact.size_bytes)

        def chunks() -> Iterator[bytes]:
            with artefact.path.open("rb") as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
                    progress.advance(task, len(chunk))

        self.cli.client.upload(url, chunks(), artefact.size_bytes)


def wait_for_badge(cli: Session, slug: str, version: str) -> dict[str, Any]:
    """Poll until the release's check has ended. Returns `{badge, verdict}`."""
    deadline = time.monotonic() + BADGE_DEADLINE_S
    with cli.terminal.progress() as progress:
        progress.add_task("checking the release in a sandbox", total=None)
        while time.monotonic() < deadline:
            found = cli.client.get(f"{HUB}/{slug}/@{version}/badge")["data"]
            if found["badge"] in ("GREEN", "RED"):
                return {"badge": found["badge"], "verdict": found.get("verdict")}
            time.sleep(BADGE_POLL_S)
    raise CliError(f"the check of {slug}@{version} has not ended after {BADGE_DEADLINE_S:.0f} s", hint=f"prime env status {slug}")


def report_badge(cli: Session, badge: dict[str, Any]) -> None:
    verdict = badge.get("verdict") or {}
    if badge.get("badge") == "GREEN":
        cli.terminal.success(f"green: {verdict.get('summary', 'the release works')}")
    elif badge.get("badge") == "RED":
        summary = verdict.get("summary", "the release does not work")
        is_placed = not verdict.get("module") or verdict["module"] in summary
        where = "" if is_placed else f" ({verdict['module']}, line {verdict['line']})"
        raise CliError(f"red: {summary}{where}", ExitCode.RUN_FAILED, code="red_badge")


def _resolve(cli: Session, project: Project, visibility: str | None, owner: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {"name": project.name}
    if visibility:
        body["visibility"] = visibility.upper()
    if owner:
        body["owner_slug"] = owner
    elif cli.config.team_id:
        body["team_id"] = cli.config.team_id
    elif upstream := read_push_record(project.root).get("owner"):
        body["owner_slug"] = upstream
    try:
        found = cli.client.post(f"{HUB}/resolve", body)["data"]
    except CliError as error:
        if error.exit_code is ExitCode.NOT_FOUND and not owner and "owner_slug" in body:
            error.hint = f"This folder was pushed to or pulled from {body['owner_slug']} before; --owner names yours."
        raise
    return {"name": project.name, **found}


def _record(environment: dict[str, Any], project: Project, release: dict[str, Any]) -> dict[str, Any]:
    return {
        "environment_id": environment["id"],
        "owner": environment["owner"]["name"],
        "name": environment["name"],
        "version": project.version,
        "pushed_at": datetime.now(UTC).isoformat(),
        **{name: release[name] for name in ("wheel_sha256",) if name in release},
    }

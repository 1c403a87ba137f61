"""Bodies of the hub's requests, as the public client sends them, and of its answers (wire: env hub)."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from controlplane.core.pagination import OffsetQuery
from controlplane.core.schemas import Answer, Body, Query
from trainer.contracts.base import Sha256
from trainer.contracts.internal import Compatibility
from trainer.contracts.release_checks import SampleRollout, SplitSeen, TaskProblem

VERSION_LENGTH_MAX = 64
NAME_LENGTH_MAX = 100


class ResolveBody(Body):
    name: Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX)]
    visibility: Literal["PUBLIC", "PRIVATE"] | None = None
    owner_slug: str | None = None
    team_slug: str | None = None


class LookupBody(Body):
    id: Annotated[str, Field(min_length=1, max_length=64)]


class PackageMetadata(BaseModel):
    """What pyproject.toml says, as the sender read it. Clients of several ages send more; that is ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    description: Annotated[str, Field(max_length=2000)] = ""
    tags: Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=32)] = []
    license: Annotated[str, Field(max_length=500)] | None = ""
    dependencies: Annotated[list[Annotated[str, Field(max_length=500)]], Field(max_length=256)] = []
    python_requires: Annotated[str, Field(max_length=100)] | None = ""
    original_filename: Annotated[str, Field(max_length=255)] = ""
    requires_dist: Annotated[list[Annotated[str, Field(max_length=500)]], Field(max_length=256)] = []
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,64}$")] | None = None
    commit_is_clean: bool | None = None
    repository: Annotated[str, Field(max_length=500, pattern=r"^https?://[^@\s]+$")] | None = None


class DeclareUpload(Body):
    """A wheel that is about to be sent."""

    content_hash: Sha256
    filename: Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[A-Za-z0-9_.+!-]+$")]
    sha256: Sha256
    size: Annotated[int, Field(ge=1)] | None = None
    semantic_version: Annotated[str, Field(min_length=1, max_length=VERSION_LENGTH_MAX)]
    metadata: PackageMetadata = PackageMetadata()
    runtime_hint: Literal["VERIFIERS_V0", "VERIFIERS_V1"] | None = None


class DeclareSource(DeclareUpload):
    """A source archive that is about to be sent; its arrival makes the release."""


class ListQuery(OffsetQuery):
    sort_by: Literal["name", "created_at", "updated_at", "stars"] | None = None
    """Without it: best match first where something is searched, else the newest."""
    sort_order: Literal["asc", "desc"] = "desc"
    owner: str | None = None
    visibility: Literal["PUBLIC", "PRIVATE"] | None = None
    search: Annotated[str, Field(max_length=100)] = ""
    tags: Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=16)] = []
    badge: Literal["PENDING", "BUILDING", "GREEN", "RED"] | None = None
    """What the check of the newest release has found."""
    include_teams: bool = True
    """With false, of the caller's own those of the personal team alone."""
    starred_only: bool = False
    mine_only: bool = False


class InspectQuery(Query):
    path: Annotated[str, Field(max_length=512)] = ""
    max_bytes: Annotated[int, Field(ge=1, le=2**20)] = 100_000


class ForkBody(Body):
    team_slug: str | None = None


class InviteBody(Body):
    user: Annotated[str, Field(min_length=1, max_length=64)]


class Owner(Answer):
    name: str


class EnvironmentRow(Answer):
    id: str
    name: str
    owner: Owner
    description: str
    visibility: str
    tags: list[str]
    latest_version: str | None
    badge: str | None
    stars: int = 0
    starred: bool = False
    created_at: datetime
    updated_at: datetime


class EnvironmentList(Answer):
    data: list[EnvironmentRow]
    total_count: int
    offset: int
    limit: int


class Forked(Answer):
    slug: str
    environment_id: str
    version_id: str


class Stars(Answer):
    stars: int
    starred: bool


class RelatedRow(Answer):
    """`environment` is `owner/name`; version and badge are its latest release's, null before the first."""

    environment: str
    description: str
    version: str | None
    badge: str | None


class Related(Answer):
    """The newest first, at most a hundred each."""

    dependants: list[RelatedRow]
    """Environments with a release that depends on this one."""
    forks: list[RelatedRow]


class CollaboratorRow(Answer):
    user: str
    invited_at: datetime


class CollaboratorRows(Answer):
    collaborators: list[CollaboratorRow]


class Resolved(Answer):
    id: str
    name: str
    owner: Owner
    visibility: str
    created: bool


class Found(Answer):
    """What an id is."""

    id: str
    name: str
    owner: Owner


class Provenance(Answer):
    """Who sent a release, when and with what. `commit` and `repository` are the sender's word; the rest we saw."""

    pushed_by: str
    pushed_at: datetime
    client: str
    commit: str | None = None
    commit_is_clean: bool | None = None
    repository: str | None = None


class ReleaseName(Answer):
    semantic_version: str
    content_hash: str
    created_at: datetime


class ReleaseDetail(Answer):
    """One release of an environment; `id` and `sha256` are the environment's and the source archive's, as the wire has it."""

    id: str
    release_id: str
    name: str
    owner: Owner
    visibility: str
    description: str
    semantic_version: str
    content_hash: str
    sha256: str
    latest_version: ReleaseName | None
    """Its `content_hash` is the one that the public client compares a folder with, to tell whether it is ahead. It counts
    folders too, and so is no other field's."""
    metadata: dict[str, Any]
    wheel_url: str | None
    simple_index_url: str | None
    install_index_url: str | None
    url_dependencies: list[str]
    """What its wheel requires by address: an installer that takes the release from an index must be given these too."""
    requirement: str
    """The line by which another environment depends on this release."""
    package_url: str
    tracked_package_url: str
    allows_prereleases: bool
    """Whether its `[tool.uv]` says `prerelease = "allow"`: an installer must be told so too."""
    badge: str
    compatibility: Compatibility | None
    """As its check saw it; None before its end."""
    runtime_hint: str | None
    yanked: bool
    quarantined: bool
    quarantine_reason: str | None
    """The operator's words, for members of the owning team."""
    provenance: Provenance
    tags: list[str]
    stars: int
    starred: bool
    may_push: bool
    """Whether the caller may push releases of it."""
    is_owner: bool
    """Whether a team of the caller owns it."""
    forked_from: str | None
    """`owner/name@version`, for those who may see that one."""
    forks: int
    created_at: datetime


class Verdict(Answer):
    ok: bool
    summary: str
    module: str | None = None
    line: int | None = None
    tasks_count: int | None = None
    duration_s: float
    compatibility: Compatibility | None = None
    splits: list[SplitSeen] = []
    problems: list[TaskProblem] = []
    samples: list[SampleRollout] = []


class BadgeState(Answer):
    environment: str
    version: str
    badge: str
    verdict: Verdict | None
    requirements_lock: str
    checked_at: datetime | None


class VersionRow(Answer):
    """`sha256` is the content hash and `size` the number of artefacts, as the public client reads them."""

    version: str
    created_at: datetime
    sha256: str
    size: int
    wheel_size_bytes: int
    badge: str
    yanked: bool
    quarantined: bool
    release_id: str


class VersionRows(Answer):
    versions: list[VersionRow]


class CheckStatus(Answer):
    status: Literal["SUCCESS", "FAILED", "RUNNING", "PENDING"]


class EnvironmentStatus(Answer):
    name: str
    description: str
    visibility: str
    latest_version: ReleaseName | None
    action: CheckStatus | None
    badge: str | None


class Readme(Answer):
    html: str
    text: str


class CheckLog(Answer):
    log: str


class WheelDeclared(Answer):
    wheel_id: str
    upload_url: str | None


class SourceDeclared(Answer):
    version_id: str
    upload_url: str


class Finalized(Answer):
    success: bool = True
    message: str
    release_id: str | None = None


class Entry(Answer):
    name: str
    path: str
    is_directory: bool
    size: int | None
    modified_at: datetime | None = None
    content_hash: str | None = None


class Inspection(Answer):
    kind: Literal["directory", "file"]
    path: str
    version_id: str
    entries: list[Entry] = []
    entry: Entry | None = None
    content: str | None = None
    truncated: bool = False
    total_bytes: int | None = None

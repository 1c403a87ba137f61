"""What the hub refuses, in the words that its senders need. Some texts hold strings that the public client looks for."""

from controlplane.core.errors import Conflict, Invalid, NotFound
from controlplane.hub.archives import ArchiveRefused


class RedBadge(Conflict):
    """The release did not pass its check, so nothing is started on it."""

    code = "red_badge"


class AlreadyPublished(Conflict):
    """A release is immutable: neither its version nor its content can be published again."""

    code = "already_exists"


def no_environment(slug: str) -> NotFound:
    """Absent and private look the same."""
    return NotFound(f"There is no environment '{slug}'.", hint="`prime env list` shows those that you may see.")


def no_release(slug: str, version: str) -> NotFound:
    return NotFound(f"There is no release '{slug}@{version}'.", hint=f"`prime env versions {slug}` lists them.")


def no_upload(upload_id: str) -> NotFound:
    return NotFound(f"There is no upload '{upload_id}'.", hint="Push again; an upload that was refused is gone.")


def content_taken(content_hash: str, version: str) -> AlreadyPublished:
    detail = f"This content hash ({content_hash[:12]}) already exists as version {version}; nothing has changed since."
    return AlreadyPublished(detail, hint="Change the environment, and raise its version with --auto-bump.")


def version_taken(version: str) -> AlreadyPublished:
    detail = f"Version {version} already exists with another content hash; releases are immutable."
    return AlreadyPublished(detail, hint="Raise the version: `prime push --auto-bump`.")


def refused_archive(error: ArchiveRefused) -> Invalid:
    """422 whose location ends in the member's name."""
    loc = ("body", "archive", error.member) if error.member else ("body", "archive")
    return Invalid(loc, str(error), code="archive_refused", hint="Nothing of the archive was kept. Correct it and push again.")


def red_badge(slug: str, version: str, verdict: dict[str, object] | None) -> RedBadge:
    found = verdict or {}
    summary, module = str(found.get("summary") or "it does not work"), str(found.get("module") or "")
    where = f" ({module}, line {found.get('line')})" if module and module not in summary else ""
    detail = f"{slug}@{version} did not pass its check: {summary}{where}."
    return RedBadge(detail, hint="Push a corrected version, or force the run to see it fail.")

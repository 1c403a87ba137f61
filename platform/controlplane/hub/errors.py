"""What the hub refuses, in the words that its senders need. Some texts hold strings that the public client looks for."""

from controlplane.core.errors import Conflict, FieldProblem, Invalid, NotFound
from controlplane.hub.archives import ArchiveRefused, SecretFound

SECRET_HINT = (
    "Nothing was kept. Take the key out and revoke it; your code gets keys by `prime env secret`. A line that only looks like "
    "a key passes with `rootstock: not-a-secret` on it."
)


class RedBadge(Conflict):
    """The release did not pass its check, so nothing is started on it."""

    code = "red_badge"


class Quarantined(Conflict):
    """An operator has withdrawn the release: it is neither installed nor started, whoever asks."""

    code = "quarantined"


class AlreadyPublished(Conflict):
    """A release is immutable: neither its version nor its content can be published again."""

    code = "already_exists"


def no_environment(slug: str) -> NotFound:
    """Absent and private look the same."""
    return NotFound(f"There is no environment '{slug}'.", hint="`prime env list` shows those that you may see.")


def no_release(slug: str, version: str) -> NotFound:
    return NotFound(f"There is no release '{slug}@{version}'.", hint=f"`prime env versions {slug}` lists them.")


def no_collaborator(name: str) -> NotFound:
    return NotFound(f"There is no collaborator '{name}'.", hint="The environment's page and `prime env collaborators` list them.")


def no_upload(upload_id: str) -> NotFound:
    return NotFound(f"There is no upload '{upload_id}'.", hint="Push again; an upload that was refused is gone.")


def name_looks_taken(name: str, other: str) -> Invalid:
    return Invalid(
        ("body", "name"),
        f"'{name}' looks like '{other}'; people would take one for the other",
        hint="Choose a name that nobody can mistake.",
    )


def quarantined(slug: str, version: str, reason: str) -> Quarantined:
    """`reason` is for the owning team; others learn that there is one."""
    detail = f"{slug}@{version} is in quarantine" + (f": {reason}" if reason else ".")
    return Quarantined(detail, hint=f"`prime env versions {slug}` shows other releases; the operator lifts a quarantine.")


def content_taken(content_hash: str, version: str) -> AlreadyPublished:
    detail = f"This content hash ({content_hash[:12]}) already exists as version {version}; nothing has changed since."
    return AlreadyPublished(detail, hint="Change the environment, and raise its version with --auto-bump.")


def version_taken(version: str) -> AlreadyPublished:
    detail = f"Version {version} already exists with another content hash; releases are immutable."
    return AlreadyPublished(detail, hint="Raise the version: `prime push --auto-bump`.")


def refused_archive(error: ArchiveRefused) -> Invalid:
    """422 whose location ends in the member's name; for a key in it, in the line."""
    if isinstance(error, SecretFound):
        return _secret_found(error)
    loc = ("body", "archive", error.member) if error.member else ("body", "archive")
    return Invalid(loc, str(error), code="archive_refused", hint="Nothing of the archive was kept. Correct it and push again.")


def _secret_found(error: SecretFound) -> Invalid:
    refused = Invalid(("body", "archive", error.member), str(error), code="secret_found", hint=SECRET_HINT)
    refused.problems = [
        FieldProblem(("body", "archive", error.member, finding.line), f"{error.member}: {finding}") for finding in error.findings
    ]
    return refused


def stands_on_private(name: str, other: str) -> Invalid:
    return Invalid(
        ("body", "visibility"),
        f"releases of '{name}' stand on '{other}', which is private: others could not install them",
        hint="Publish that one first, or yank these releases.",
    )


def unmet_dependency(slug: str, version: str, detail: str) -> Conflict:
    """What it stands on was withdrawn or hidden after its push."""
    hint = "Push a release that requires what can be had: `prime env info` shows a release's line."
    return Conflict(f"{slug}@{version} {detail}.", hint=hint)


def check_is_due(slug: str, version: str) -> Conflict:
    detail = f"{slug}@{version} is not checked again: its check is not over, or it is in quarantine."
    return Conflict(detail, hint="`prime env status` shows its state.")


def red_badge(slug: str, version: str, verdict: dict[str, object] | None) -> RedBadge:
    found = verdict or {}
    summary, module = str(found.get("summary") or "it does not work"), str(found.get("module") or "")
    where = f" ({module}, line {found.get('line')})" if module and module not in summary else ""
    detail = f"{slug}@{version} did not pass its check: {summary}{where}."
    return RedBadge(detail, hint="Push a corrected version, or force the run to see it fail.")

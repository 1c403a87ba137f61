"""Large parts of rollouts (images, routing data) as files by digest, beside the run's other artifacts.

Knows bytes and their SHA-256. Refuses to know what they show: a rollout carries the reference alone, so that the orchestrator
holds no picture. Equal content is kept once; a file is visible once it is whole; nothing is ever written over.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from trainer.contracts.base import new_id
from trainer.contracts.samples import ArtifactRef

ARTIFACT_BYTES_MAX = 64 << 20


class ArtifactTooLarge(ValueError):
    """The content is beyond the limit; nothing was kept of it."""


class ArtifactDamaged(Exception):
    """What lies under a digest is not what the digest says."""


class RolloutArtifacts:
    """`folder` is the run's own: what it holds goes when the run's rollouts go."""

    def __init__(self, folder: Path, *, bytes_max: int = ARTIFACT_BYTES_MAX):
        self._folder = folder
        self._bytes_max = bytes_max

    def keep(self, parts: Sequence[bytes]) -> ArtifactRef:
        """The reference of the parts' bytes one after the other. Raises ArtifactTooLarge."""
        digest, size = hashlib.sha256(), sum(map(len, parts))
        if size > self._bytes_max:
            raise ArtifactTooLarge(f"{size} bytes are more than {self._bytes_max}; make it smaller")
        for part in parts:
            digest.update(part)
        path = self._path(digest.hexdigest())
        if not path.exists():
            self._write(path, parts)
        return ArtifactRef(digest=path.name, size_bytes=size)

    def read(self, ref: ArtifactRef) -> bytes:
        """The content, checked. Raises ArtifactDamaged, and FileNotFoundError where it was removed."""
        content = self._path(ref.digest).read_bytes()
        if len(content) != ref.size_bytes or hashlib.sha256(content).hexdigest() != ref.digest:
            raise ArtifactDamaged(f"the artifact {ref.digest[:12]} does not have its digest")
        return content

    def _write(self, path: Path, parts: Sequence[bytes]) -> None:
        """Whole or not at all. Whoever writes the same content at the same time changes nothing."""
        self._folder.mkdir(parents=True, exist_ok=True)
        draft = self._folder / f".{new_id()}"
        try:
            with draft.open("xb") as file:
                file.writelines(parts)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self._folder / digest

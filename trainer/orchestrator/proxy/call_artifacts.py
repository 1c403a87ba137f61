"""What of a model call is too large to travel with a rollout: the pictures of its prompt, the experts that its tokens took.

Knows how a generate call spells both. Refuses to know models and to keep anything by itself.
"""

import binascii
import json

from trainer.contracts.generation import ContentPart, RoutedExperts
from trainer.contracts.samples import ArtifactRef
from trainer.orchestrator.proxy.artifacts import RolloutArtifacts

_DATA, _BASE64 = "data:", ";base64,"


def keep_routing(routing: RoutedExperts, artifacts: RolloutArtifacts) -> ArtifactRef:
    """One line of JSON (`dtype`, `shape`, `start`), then the array's bytes as the engine sent them. Raises ValueError."""
    head = json.dumps({"dtype": routing.dtype, "shape": routing.shape, "start": routing.start}).encode() + b"\n"
    return artifacts.keep([head, binascii.a2b_base64(routing.data, strict_mode=True)])


def keep_pictures(parts: list[ContentPart], artifacts: RolloutArtifacts) -> ArtifactRef:
    """JSON that lists the prompt's media in order, each by type, media type and the digest of its bytes. Raises ValueError."""
    listed = []
    for part in parts:
        media_type, content = split_data_url(part.url)
        listed.append({"type": part.type, "media_type": media_type, **artifacts.keep([content]).model_dump()})
    return artifacts.keep([json.dumps(listed).encode()])


def split_data_url(url: str) -> tuple[str, bytes]:
    """(media type, bytes). Raises ValueError for any other address: a sandbox has no network, and neither do its pictures."""
    head, mark, text = url.partition(_BASE64)
    if not mark or not head.startswith(_DATA):
        raise ValueError("a picture must be a data: URL in base64")
    return head.removeprefix(_DATA), binascii.a2b_base64(text, strict_mode=True)

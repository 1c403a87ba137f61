"""What is checked about an uploaded archive before anything of it is kept. Nothing is imported, executed or extracted.

Each format has a module; both feed every member's name, kind and size through `members`. A violation raises `ArchiveRefused`,
which names the member.
"""

from controlplane.hub.archives.members import ArchiveRefused, SecretFound
from controlplane.hub.archives.source import SourceFacts, inspect_source
from controlplane.hub.archives.wheel import WheelFacts, inspect_wheel

__all__ = ["ArchiveRefused", "SecretFound", "SourceFacts", "WheelFacts", "inspect_source", "inspect_wheel"]

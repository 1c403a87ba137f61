"""What every box sees of the host's file system: the system's programs and libraries, read-only.

Knows folders. Refuses to know drivers. Homes, /etc, /var, /run, /srv, sockets and the repository are absent unless a spec binds
them by name.
"""

from pathlib import Path

from trainer.sandboxing.specs import Mount

_LINKED_INTO_USR = ("bin", "sbin", "lib", "lib32", "lib64")


def system_mounts() -> tuple[Mount, ...]:
    """/usr, and the classic folders that on some hosts are not links into it."""
    classic = (Path("/", name) for name in _LINKED_INTO_USR)
    return (Mount(Path("/usr"), "/usr"), *(Mount(path, str(path)) for path in classic if path.is_dir() and not path.is_symlink()))


def system_links() -> tuple[tuple[str, str], ...]:
    """(target, link) of the classic folders that are links into /usr, such as ("usr/lib", "/lib")."""
    paths = (Path("/", name) for name in _LINKED_INTO_USR)
    return tuple((str(path.readlink()), str(path)) for path in paths if path.is_symlink())

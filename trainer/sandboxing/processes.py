"""A process tree read from /proc: how many, how much memory, how much processor time.

Knows /proc. Refuses to know limits. Used where control groups cannot be written, so it is a measurement by polling and says so: a
tree can overshoot between two looks.
"""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class TreeSample:
    """`memory_bytes` is resident memory that is not shared with files, summed."""

    processes: int
    memory_bytes: int
    cpu_s: float


def sample_tree(pid: int, proc: Path = Path("/proc")) -> TreeSample:
    """The tree below and including `pid`. Processes that vanish meanwhile count as gone."""
    pending, processes, memory_bytes, ticks = [pid], 0, 0, 0
    while pending:
        current = pending.pop()
        try:
            stat = (proc / str(current) / "stat").read_text().rpartition(")")[2].split()
            resident, shared = (int(field) for field in (proc / str(current) / "statm").read_text().split()[1:3])
            for thread in os.listdir(proc / str(current) / "task"):
                pending += [int(child) for child in (proc / str(current) / "task" / thread / "children").read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        processes += 1
        memory_bytes += (resident - shared) * _PAGE_BYTES
        ticks += int(stat[11]) + int(stat[12]) + int(stat[13]) + int(stat[14])
    return TreeSample(processes, memory_bytes, ticks / _TICKS_PER_S)


def folder_bytes(root: Path, entries_max: int = 10_000) -> int:
    """Bytes that files below `root` occupy; links are not followed. Stops counting, generously, at `entries_max` entries, each of
    which costs at least one block."""
    total, seen, pending = 0, 0, [root]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if seen > entries_max:
                        return max(total, seen * 4096)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(Path(entry.path))
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except (FileNotFoundError, NotADirectoryError):
            continue
    return total

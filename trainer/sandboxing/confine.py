"""Run as a script: enter control groups, lower resource limits, then become the given command.

    python -I -S confine.py '{"groups": [...], "limits": {"FSIZE": 1}, "cpus": [0]}' COMMAND...

A separate process does it, before any sandbox exists, because a hook between fork and exec is unsafe in a program with threads.
Standard library only; imports nothing of ours so that it starts in milliseconds.
"""

import json
import os
import resource
import sys


def main(argv: list[str]) -> None:
    plan = json.loads(argv[1])
    for procs_file in plan["groups"]:
        with open(procs_file, "w") as file:
            file.write(str(os.getpid()))
    for name, value in plan["limits"].items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    if plan["cpus"]:
        os.sched_setaffinity(0, plan["cpus"])
    os.execv(argv[2], argv[2:])


if __name__ == "__main__":
    main(sys.argv)

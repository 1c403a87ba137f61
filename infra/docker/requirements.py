"""Prints what `pyproject.toml` requires with the named extras, one a line: an image installs them in a layer of its own.

    python requirements.py PYPROJECT server trainer

Knows pyproject's two tables. `torch` is printed only when asked for (`--torch`), since an image chooses where it comes from.
"""

import argparse
import re
import tomllib
from pathlib import Path


def requirements(project: dict, extras: list[str]) -> list[str]:
    """Base dependencies first, each requirement once. Raises KeyError for an extra that does not exist."""
    found = [*project["dependencies"], *(need for extra in extras for need in project["optional-dependencies"][extra])]
    return list(dict.fromkeys(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pyproject", type=Path)
    parser.add_argument("extras", nargs="*")
    parser.add_argument("--torch", action="store_true", help="torch alone, instead of everything else")
    options = parser.parse_args()
    project = tomllib.loads(options.pyproject.read_text())["project"]
    for need in requirements(project, options.extras):
        if (re.match(r"[A-Za-z0-9._-]+", need)[0] == "torch") == options.torch:
            print(need)


if __name__ == "__main__":
    main()

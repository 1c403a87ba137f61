"""Asks the published client whether a folder that it pulled is ahead of the hub, as its `eval run` does before it uploads."""

import sys
from pathlib import Path

from prime_cli.core import APIClient
from prime_cli.utils.eval_environment import _resolve_local_env_display

name, folder = sys.argv[1:]
shown, _, _, _, reason = _resolve_local_env_display(name, Path(folder), APIClient(require_auth=False))
print(f"{shown}: {reason or 'in step with the hub'}")

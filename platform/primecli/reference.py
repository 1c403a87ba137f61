"""Writes docs/cli.md from the commands themselves: `python -m primecli.reference > docs/cli.md`. A test compares the two.

Knows how a command describes itself. What stands above the commands is prose, kept here so that the file has one source.
"""

from collections.abc import Iterator
from typing import Any

import typer

from primecli.app import app

INTRODUCTION = """\
# The `prime` command

Also installed as `rootstock`. It speaks the same API, and reads the same settings, as the public client of that name.

## Settings

A variable beats a profile (`--context NAME`, `~/.prime/environments/NAME.json`), which beats `~/.prime/config.json`. Without any
setting the command talks to a Rootstock on this machine.

| variable | key in the file | default | meaning |
|---|---|---|---|
| `PRIME_API_KEY` | `api_key` | none | sent as a bearer token |
| `PRIME_API_BASE_URL`, `PRIME_BASE_URL` | `base_url` | `http://127.0.0.1:8000` | where Rootstock is |
| `PRIME_FRONTEND_URL` | `frontend_url` | `base_url` | start of the links that are printed |
| `PRIME_INFERENCE_URL` | `inference_url` | `base_url` + `/api/inference/v1` | the OpenAI-compatible endpoint |
| `PRIME_TEAM_ID` | `team_id` | your own team | the team that commands act for (`prime switch`) |
| `PRIME_CONTEXT` | | none | a profile |

## Output and exit codes

Tables are for people. With `--output json` stdout holds the API's own reply and nothing else; a command that follows something
prints one JSON document a line, the result last. Notes, links, progress and errors go to stderr; with `--output json` an error is
`{"error": {"message", "code", "hint", "fields"}}`.

| code | meaning |
|---|---|
| 0 | done |
| 1 | the request failed: refused fields, a conflict, no connection |
| 2 | the command line is not understood |
| 3 | not found, or not yours |
| 4 | the wallet is empty |
| 5 | not signed in, or not allowed |
| 6 | what was waited for ended badly: a run, an evaluation, a deployment, the check of a release, the test of a webhook |
| 7 | `prime eval gate`: the evaluation does not meet its limits |

## Beginning

`prime init my-env` writes an environment that passes its own tests and trains, and a run on it. `--from-dataset` takes the
tasks from a file of JSON lines, a Parquet file or a folder that `Dataset.save_to_disk` wrote (the last two need `pyarrow`);
each row that is no task is told by line. `prime doctor` says what is wrong between this terminal and a run, and the way out.
`prime train why RUN` does so for one run. `prime --install-completion` makes the shell complete commands and options.

## Starting a run

`prime train CONFIG.toml` is short for `prime train start CONFIG.toml`. Every field of the file can be set behind it: `--max_steps
20`, `--sampling.temperature 0.7`, `--env.0.args.low 1`. A value is read as TOML where it is TOML, else as text; what was set is
echoed, and so is the configuration that the run then has.

## Commands
"""


def render() -> str:
    """The whole file."""
    sections = [_section(path, command) for path, command in _leaves(typer.main.get_command(app), ["prime"])]
    return INTRODUCTION + "\n" + "\n".join(sections)


def _leaves(command: Any, path: list[str]) -> Iterator[tuple[str, Any]]:
    """Visible commands in the order of the help; a group that does something by itself comes before its parts."""
    children = getattr(command, "commands", {})
    if not children or (command.invoke_without_command and len(path) > 1):
        yield " ".join(path), command
    for name, child in children.items():
        if not child.hidden:
            yield from _leaves(child, [*path, name])


def _section(path: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.name not in ("help", "output")]
    usage = " ".join([path, *(_usage(one) for one in arguments)])
    lines = [f"### {path}", "", f"`{usage}`", "", " ".join((command.help or "").split()), ""]
    for one in (*arguments, *options):
        described = getattr(one, "help", None) or ""
        lines.append(f"- `{_spelled(one)}` {described}".rstrip())
    return "\n".join(lines).rstrip() + "\n"


def _usage(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _spelled(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return ", ".join(parameter.opts)


if __name__ == "__main__":
    typer.echo(render(), nl=False)

"""An environment whose every text is an attack on whoever reads it in a browser: name aside, all of it is a tenant's to choose.

Knows the corpus and where a tenant's text can stand. Refuses to know how pages show it.
"""

from pathlib import Path

from playwright.sync_api import Page

from tests.fixtures.places import REPOSITORY

CORPUS = tuple((REPOSITORY / "tests" / "data" / "markup" / "stored_scripts.txt").read_text().splitlines())
NAME = "hostile-text"
PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{name}"
version = "0.1.0"
description = '''{description}'''
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["verifiers>=0.4,<0.5"]

[tool.hatch.build.targets.wheel]
packages = ["hostile_text"]
"""
MODULE = '''\
"""Prompts, log lines and errors that would run in a page which trusted them."""

import verifiers.v1 as vf

TEXTS = {texts!r}

print(*TEXTS, sep="\\n", flush=True)


class HostileTask(vf.Task[vf.TaskData]):
    @vf.reward
    async def length(self, trace: vf.Trace) -> float:
        return min(1.0, len(trace.last_reply) / 8)


class HostileTaskset(vf.Taskset[HostileTask, vf.TasksetConfig]):
    def load(self):
        for text in TEXTS:
            yield HostileTask(vf.TaskData(prompt=text), self.config.task)


__all__ = ["HostileTaskset"]
'''

# What could run or leave: handlers, addresses that are code, foreign scripts, frames, and requests to another host.
FIND_EXECUTABLE = """() => [...document.querySelectorAll("*")].filter((one) =>
  [...one.attributes].some(({name, value}) => name.startsWith("on")
    || (["href", "src", "action", "formaction", "xlink:href"].includes(name) && /^\\s*(javascript|data:text)/i.test(value)))
  || (one.tagName.toLowerCase() === "script" && !one.src.startsWith(`${location.origin}/assets/`))
  || ["iframe", "object", "embed", "base"].includes(one.tagName.toLowerCase())
  || (one.tagName === "FORM" && one.hasAttribute("action") && new URL(one.action).origin !== location.origin)
  || (one.tagName === "META" && one.httpEquiv === "refresh")).map((one) => one.outerHTML.slice(0, 200))"""


def write_environment(folder: Path) -> Path:
    """The environment's source under `folder`."""
    source = folder / NAME
    (source / "hostile_text").mkdir(parents=True)
    (source / "pyproject.toml").write_text(PROJECT.format(name=NAME, description=CORPUS[1]))
    (source / "README.md").write_text("# hostile-text\n\n" + "\n\n".join(CORPUS) + "\n")
    (source / "hostile_text" / "__init__.py").write_text(MODULE.format(texts=list(CORPUS)))
    return source


def executable_content(page: Page) -> list[str]:
    """Elements on the page that would run something or fetch from elsewhere."""
    found: list[str] = page.evaluate(FIND_EXECUTABLE)
    return found

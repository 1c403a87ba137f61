"""`python -m trainer.runner FOLDER`: serve the environment that FOLDER/config.json names on FOLDER/run.sock, until killed.

Knows the bound folder. stdout and stderr are the tenant's log and never a protocol.
"""

import asyncio
import base64
import logging
import os
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

# Before the library: the MCP package would otherwise install a handler that prints every request.
logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")

from aiohttp import web  # noqa: E402

from trainer.contracts.rollouts import MODEL_PORT, MODEL_SOCKET, RUN_SOCKET, RUNNER_CONFIG, RunnerConfig  # noqa: E402
from trainer.runner.forwarder import start_forwarder  # noqa: E402
from trainer.runner.hosting import host  # noqa: E402
from trainer.runner.service import RunnerService  # noqa: E402

log = logging.getLogger("trainer.runner")


async def serve(folder: Path) -> None:
    environment = host(take_config(folder / RUNNER_CONFIG))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(await start_forwarder(folder / MODEL_SOCKET, MODEL_PORT))
        # An orchestrator that hangs up has given the rollout up: cancel it.
        runner = web.AppRunner(RunnerService(environment).application(), handler_cancellation=True, access_log=None)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.UnixSite(runner, str(folder / RUN_SOCKET)).start()
        await environment.load(stack)
        await asyncio.Event().wait()


def take_config(path: Path) -> RunnerConfig:
    """Read the configuration and remove its file, so that the secrets in it lie on no disk while tenant code runs. Tenant code,
    and whatever it starts, sees them as environment variables; those that are files lie in the sandbox's own memory."""
    config = RunnerConfig.model_validate_json(path.read_bytes())
    path.unlink()
    os.environ.update(config.secrets)
    for name, content in config.secret_files.items():
        file = Path(tempfile.mkdtemp()) / name
        file.write_bytes(base64.b64decode(content))
        os.environ[name] = str(file)
    return config


def main() -> None:
    loop = asyncio.new_event_loop()
    service = loop.create_task(serve(Path(sys.argv[1])))
    while not service.done():
        try:
            loop.run_until_complete(service)
        except SystemExit as error:
            # Tenant code called sys.exit in some task, which leaves the loop through here. The loop is whole: go on.
            log.error("the environment raised SystemExit(%r)", error.code)


if __name__ == "__main__":
    main()

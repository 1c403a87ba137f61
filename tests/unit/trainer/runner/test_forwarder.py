"""Bytes between the loopback port and the model socket."""

import asyncio

import pytest

from trainer.runner.forwarder import start_forwarder
from trainer.sandboxing.runners import runner_folder


@pytest.fixture
def folder():
    with runner_folder() as folder:
        yield folder


async def connect(server):
    return await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])


async def test_bytes_pass_both_ways_and_the_end_passes_too(folder):
    async def shout(reader, writer):
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()

    async with (
        await asyncio.start_unix_server(shout, folder / "model.sock"),
        await start_forwarder(folder / "model.sock", 0) as server,
    ):
        reader, writer = await connect(server)
        writer.write(b"hello\n")
        assert await reader.read() == b"HELLO\n"
        writer.close()


async def test_no_model_closes_the_connection(folder):
    async with await start_forwarder(folder / "model.sock", 0) as server:
        reader, writer = await connect(server)
        assert await reader.read() == b""
        writer.close()

"""What one request costs the server's process: `python -m tests.bench.engine_requests [--requests 1000] [--in-flight 64]`.

Sends rollout-sized generate requests over a socket and prints the server's CPU time per request, and answers a second of wall
time, client included.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import httpx

from tests.factories.engine_process import EngineProcess, engine_process

BODY = {
    "model": "tiny",
    "token_ids": list(range(40, 60)),
    "sampling_params": {"max_tokens": 7, "ignore_eos": True, "logprobs": 1},
}


def cpu_s(process_id: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def send(engine: EngineProcess, requests: int, in_flight: int) -> None:
    limit = asyncio.Semaphore(in_flight)
    async with httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=in_flight)) as client:

        async def one() -> None:
            async with limit:
                (await client.post(engine.url + "/inference/v1/generate", json=BODY)).raise_for_status()

        await asyncio.gather(*(one() for _ in range(requests)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--step-interval-ms", default="20")
    arguments = parser.parse_args()
    options = ("--step-interval-ms", arguments.step_interval_ms)
    with tempfile.TemporaryDirectory() as folder, engine_process(Path(folder), *options) as engine:
        asyncio.run(send(engine, 100, arguments.in_flight))
        started_s, started_cpu_s = time.monotonic(), cpu_s(engine.process.pid)
        asyncio.run(send(engine, arguments.requests, arguments.in_flight))
        used_s, wall_s = cpu_s(engine.process.pid) - started_cpu_s, time.monotonic() - started_s
        print(f"{arguments.requests} requests, {arguments.in_flight} in flight: ", end="")
        print(f"{used_s / arguments.requests * 1000:.2f} ms of CPU each, {arguments.requests / wall_s:.0f} a second")
        steps, rows = engine.metric("step_rows_count"), engine.metric("step_rows_sum")
        print(f"{rows / steps:.1f} rows a step, {engine.metric('step_seconds_sum') / steps * 1000:.1f} ms of wall time a step")


if __name__ == "__main__":
    main()

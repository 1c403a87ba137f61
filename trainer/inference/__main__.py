"""`python -m trainer.inference --model tiny --artifacts DIR --port P`: one engine process.

Reads arguments and ROOTSTOCK_POOL_TOKEN, and nothing else. SIGTERM: no new connections, what runs may end, then the rest is cut.
"""

import argparse
import logging
import sys
from pathlib import Path

import torch

from trainer.contracts.catalogue import load_catalogue
from trainer.inference.assembly import torch_service
from trainer.inference.limits import MIB, EngineLimits
from trainer.inference.server import make_app
from trainer.inference.serving import EngineServer, pool_token

_SWITCH_INTERVAL_S = 0.0005
"""The event loop and the engine share the interpreter. With the default of 5 ms each of a step's hundred tensor operations could
wait that long while a request is parsed."""


def _arguments() -> argparse.Namespace:
    defaults = EngineLimits()
    parser = argparse.ArgumentParser(prog="python -m trainer.inference", description="Serve one base model and its adapters.")
    parser.add_argument("--model", required=True, help="id in the catalogue")
    parser.add_argument("--artifacts", required=True, type=Path, help="folder that adapter versions are loaded from")
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--device", default="cpu", help="torch device, such as cpu or cuda")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of one tensor operation")
    parser.add_argument(
        "--step-interval-ms", type=float, default=20.0, help="least time between two steps of a batch with few rows"
    )
    parser.add_argument("--sequences-max", type=int, default=defaults.sequences_max)
    parser.add_argument("--step-tokens", type=int, default=defaults.step_tokens_max, help="tokens computed in one step")
    parser.add_argument("--waiting-max", type=int, default=defaults.waiting_max)
    parser.add_argument("--kv-cache-mib", type=int, default=defaults.kv_cache_bytes // MIB)
    parser.add_argument("--adapter-slots", type=int, default=defaults.adapter_slots)
    parser.add_argument("--adapter-ram-mib", type=int, default=defaults.adapter_ram_bytes // MIB)
    parser.add_argument("--request-deadline-s", type=float, default=defaults.request_deadline_s)
    return parser.parse_args()


def _limits(arguments: argparse.Namespace) -> EngineLimits:
    return EngineLimits(
        sequences_max=arguments.sequences_max,
        waiting_max=arguments.waiting_max,
        step_tokens_max=arguments.step_tokens,
        kv_cache_bytes=arguments.kv_cache_mib * MIB,
        adapter_slots=arguments.adapter_slots,
        adapter_ram_bytes=arguments.adapter_ram_mib * MIB,
        step_interval_s=arguments.step_interval_ms / 1000,
        request_deadline_s=arguments.request_deadline_s,
    )


def main() -> int:
    arguments = _arguments()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    torch.set_num_threads(arguments.threads)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    catalogue = load_catalogue()
    if arguments.model not in catalogue:
        print(f"no model '{arguments.model}' in the catalogue; it holds {', '.join(catalogue) or 'none'}", file=sys.stderr)
        return 2
    server = EngineServer(arguments.host, arguments.port)
    service = torch_service(
        catalogue[arguments.model],
        artifacts=arguments.artifacts,
        limits=_limits(arguments),
        on_fatal=server.fail,
        device=torch.device(arguments.device),
        dtype=getattr(torch, arguments.dtype),
    )
    return server.run(make_app(service, pool_token=pool_token()))


if __name__ == "__main__":
    sys.exit(main())

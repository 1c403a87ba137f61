"""`python -m trainer.inference.vllm --model tiny --artifacts DIR --port P --upstream URL`: our engine's routes in front of vLLM.

Reads arguments and ROOTSTOCK_POOL_TOKEN, and nothing else. vLLM is started by somebody else (`vllm.command`), on a network that
only this process can reach: it loads any folder it is told to. Ready once vLLM has answered a completion.
"""

import argparse
import logging
import sys
from pathlib import Path

from trainer.contracts.catalogue import BaseModelSpec, load_catalogue
from trainer.inference.base_model import BaseModel
from trainer.inference.limits import EngineLimits
from trainer.inference.metrics import EngineMetrics
from trainer.inference.server import make_app
from trainer.inference.service import InferenceService
from trainer.inference.serving import EngineServer, pool_token
from trainer.inference.vllm.adapters import FolderReader, LoadedAdapters, zero_adapter
from trainer.inference.vllm.engine import VllmEngine
from trainer.inference.vllm.upstream import Upstream


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    defaults = EngineLimits()
    parser = argparse.ArgumentParser(prog="python -m trainer.inference.vllm", description="Serve a vLLM server as an engine.")
    parser.add_argument("--model", required=True, help="id in the catalogue; vLLM must serve the same weights under this name")
    parser.add_argument("--artifacts", required=True, type=Path, help="artifact root, at the same path for vLLM")
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--upstream", required=True, help="vLLM's address, such as http://127.0.0.1:8000")
    parser.add_argument("--base-through-zero-adapter", action="store_true", help="needed where vLLM runs on CPU (see docs)")
    parser.add_argument("--names-max", type=int, default=256, help="adapters that vLLM knows by name at once")
    parser.add_argument("--sequences-max", type=int, default=defaults.sequences_max)
    parser.add_argument("--waiting-max", type=int, default=defaults.waiting_max)
    parser.add_argument("--request-deadline-s", type=float, default=defaults.request_deadline_s)
    return parser.parse_args(arguments)


def vllm_service(spec: BaseModelSpec, options: argparse.Namespace) -> InferenceService:
    limits = EngineLimits(
        sequences_max=options.sequences_max, waiting_max=options.waiting_max, request_deadline_s=options.request_deadline_s
    )
    base, metrics, upstream = BaseModel.of(spec), EngineMetrics(), Upstream(options.upstream)
    zero = zero_adapter(base, options.artifacts) if options.base_through_zero_adapter else None
    adapters = LoadedAdapters(upstream, names_max=options.names_max)
    engine = VllmEngine(upstream, adapters, limits, metrics, base=base.identity, base_adapter=zero)
    reader = FolderReader(base.adapter_reader(options.artifacts, limits))
    return InferenceService(base, engine=engine, reader=reader, limits=limits, metrics=metrics)


def main() -> int:
    options = parse()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    catalogue = load_catalogue()
    if options.model not in catalogue:
        print(f"no model '{options.model}' in the catalogue; it holds {', '.join(catalogue) or 'none'}", file=sys.stderr)
        return 2
    server = EngineServer(options.host, options.port)
    return server.run(make_app(vllm_service(catalogue[options.model], options), pool_token=pool_token()))


if __name__ == "__main__":
    sys.exit(main())

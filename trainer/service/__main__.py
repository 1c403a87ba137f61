"""`python -m trainer.service --model tiny --artifacts DIR --port P`: load the base model once and serve.

Knows the command line and the environment variable ROOTSTOCK_POOL_TOKEN. SIGTERM lets requests in flight end, then stops; a
step that is cut off is not in the batch log, and its sender sends it again.
"""

import argparse
import logging
import os
from pathlib import Path

import torch
import uvicorn

from trainer.contracts.catalogue import load_catalogue, model_folder, weights_digest
from trainer.core.determinism import fix_order_of_sums
from trainer.core.llama import Llama
from trainer.core.pool import Pool, PoolLimits
from trainer.service.app import create_app
from trainer.service.desk import Desk

KEEP_ALIVE_S = 75
"""Longer than any client keeps a connection, so that a request never meets a closing one."""
GRACE_S = 20
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m trainer.service", description="Serve the trainer of one base model.")
    parser.add_argument("--model", required=True, help="id of a base model of the catalogue")
    parser.add_argument("--artifacts", required=True, type=Path, help="artifact root, shared with the engines")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", required=True, type=int)
    parser.add_argument("--slots", type=int, default=8, help="runs that can be open at once")
    parser.add_argument("--pack-tokens", type=int, default=512, help="tokens of one forward/backward pass")
    parser.add_argument("--pack-window-ms", type=float, default=20.0, help="how long a batch waits for other runs' batches")
    parser.add_argument("--isolation", choices=["packed", "strict"], default="packed", help="strict: one run per pass")
    parser.add_argument("--recompute", action="store_true", help="keep less of a pass in memory and compute it twice")
    parser.add_argument(
        "--base-dtype", choices=sorted(DTYPES), default="float32", help="of the base model; adapters stay float32"
    )
    parser.add_argument("--device", default="cpu", help="torch's name of where the base model and the adapters lie")
    parser.add_argument("--threads", type=int, default=1, help="threads of a pass")
    return parser.parse_args(arguments)


def build_desk(options: argparse.Namespace) -> Desk:
    """Load the model and make the pool. Raises SystemExit for an unknown model or damaged weights."""
    catalogue = load_catalogue()
    if options.model not in catalogue:
        raise SystemExit(f"no base model {options.model!r} in the catalogue; there are: {', '.join(catalogue)}")
    spec = catalogue[options.model]
    folder = model_folder(spec.weights)
    limits = PoolLimits(
        slots=options.slots,
        rank_max=spec.rank_max,
        context_tokens=spec.context_tokens,
        target_modules=spec.target_modules,
        pack_tokens=options.pack_tokens,
        strict=options.isolation == "strict",
        recompute=options.recompute,
    )
    fix_order_of_sums(options.device)
    model = Llama(folder, DTYPES[options.base_dtype], options.device)
    pool = Pool(model, base_model=spec.id, artifact_root=options.artifacts, limits=limits)
    if pool.base_digest != weights_digest(folder):
        why = "" if options.base_dtype == "float32" else f" in {options.base_dtype}; stored as they are, leave --base-dtype out"
        raise SystemExit(f"the weights in memory are not those of {folder}{why}")
    return Desk(pool, base_model=spec.id, window_s=options.pack_window_ms / 1000)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    options = parse()
    torch.set_num_threads(options.threads)
    app = create_app(build_desk(options), token=os.environ.get("ROOTSTOCK_POOL_TOKEN"))
    uvicorn.run(
        app,
        host=options.host,
        port=options.port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=KEEP_ALIVE_S,
    )


if __name__ == "__main__":
    main()

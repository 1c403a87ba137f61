"""How a vLLM server is started for one base model: flags, variables, and why each is there. Knows vLLM's command line alone.

    python -m trainer.inference.vllm.command --python VENV/bin/python --model tiny --port 8000

becomes the CPU build's server. `docker-compose.yml` spells the same flags for the GPU image; a test compares the two.
"""

import argparse
import os
from pathlib import Path

from trainer.contracts.catalogue import load_catalogue
from trainer.inference.base_model import BaseModel
from trainer.inference.lora import rank_class

VARIABLES = {
    # Adapters come and go while the server runs. It must then be reachable by our own process alone.
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
}
CPU_VARIABLES = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # One core is left to the other services; the default binds a thread to every core.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "OMP_NUM_THREADS")
ADAPTERS_PER_BATCH = 8
"""Different adapters in one batch; vLLM keeps as many again in RAM. On CPU each slot costs time in every batch."""
SEQUENCES_MAX = 128
TOP_LOGPROBS_MAX = 20


def server_arguments(base: BaseModel, *, host: str, port: int, dtype: str, adapters_per_batch: int) -> list[str]:
    """Behind `vllm serve`, or behind `python -m vllm.entrypoints.openai.api_server`."""
    flags = {
        "--model": str(base.weights),
        "--served-model-name": base.spec.id,
        "--host": host,
        "--port": str(port),
        "--dtype": dtype,
        "--max-model-len": str(base.context_tokens),
        "--max-num-seqs": str(SEQUENCES_MAX),
        "--max-loras": str(adapters_per_batch),
        "--max-cpu-loras": str(2 * adapters_per_batch),
        "--max-lora-rank": str(rank_class(base.spec.rank_max)),
        "--max-logprobs": str(TOP_LOGPROBS_MAX),
        # Of the distribution that was sampled from, temperature included: what the trainer recomputes.
        "--logprobs-mode": "processed_logprobs",
        # Not the repository's generation_config.json: what a request does not say has vLLM's neutral default.
        "--generation-config": "vllm",
    }
    # Token ids in and out: text is made by our own codec, so no tokenizer is loaded at all.
    switches = ["--enable-lora", "--enable-scale-out", "--skip-tokenizer-init", "--disable-uvicorn-access-log"]
    return [part for flag in flags.items() for part in flag] + switches


def cpu_command(python: Path, base: BaseModel, *, port: int) -> list[str]:
    """The CPU build's server on loopback. Its distribution has another name, which `vllm serve` stumbles over."""
    arguments = server_arguments(base, host="127.0.0.1", port=port, dtype="float32", adapters_per_batch=ADAPTERS_PER_BATCH)
    return [str(python), "-m", "vllm.entrypoints.openai.api_server", *arguments]


def cpu_environment() -> dict[str, str]:
    kept = {name: value for name in PASSED_ON if (value := os.environ.get(name))}
    return kept | VARIABLES | CPU_VARIABLES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m trainer.inference.vllm.command", description="Become vLLM's server on CPU.")
    parser.add_argument("--python", required=True, type=Path, help="of the environment that `vllm.prepare` made")
    parser.add_argument("--model", required=True, choices=sorted(load_catalogue()), help="id in the catalogue")
    parser.add_argument("--port", required=True, type=int)
    options = parser.parse_args()
    command = cpu_command(options.python, BaseModel.of(load_catalogue()[options.model]), port=options.port)
    # Of our own variables it gets none: it holds no secret that it could lose.
    os.execve(command[0], command, cpu_environment())


if __name__ == "__main__":
    main()

"""Which processes answer model calls on one machine: our own engine, or vLLM on CPU with our routes in front of it.

Knows their commands and order. Whatever is chosen, one service called `inference` has the engine's address and health.
"""

import os
import sys
from functools import partial
from pathlib import Path

from trainer.inference.vllm import prepare
from workers.embedded.checks import answers
from workers.embedded.stack import Stack
from workers.embedded.supervisor import Service

STEP_TOKENS = {"tiny": 2048}
STEP_TOKENS_DEFAULT = 256
"""An engine's step stays near a second of one core with a model of a hundred million parameters: others' next tokens, and the
question whether it lives, wait no longer."""
MODEL_START_DEADLINE_S = 300.0
"""Reading hundreds of megabytes of weights, and hashing them, on busy cores."""
VLLM_START_DEADLINE_S = 600.0
"""On two busy cores, importing it alone takes minutes."""


def engine_services(stack: Stack) -> list[Service]:
    return {"torch": _own_engine, "vllm": _vllm}[stack.engine](stack)


def model_service(
    stack: Stack, name: str, module: str, *arguments: str, start_deadline_s: float = MODEL_START_DEADLINE_S
) -> Service:
    """A process that serves the base model on the port of its name."""
    command = [sys.executable, "-m", module, "--model", stack.model, "--artifacts", str(stack.artifacts)]
    command += ["--port", str(stack.ports[name]), *arguments]
    check = partial(answers, stack.url(name) + "/health")
    return Service(name, command, stack.environment(), check, others_wait=False, start_deadline_s=start_deadline_s)


def _own_engine(stack: Stack) -> list[Service]:
    step_tokens = STEP_TOKENS.get(stack.model, STEP_TOKENS_DEFAULT)
    return [model_service(stack, "inference", "trainer.inference", "--step-tokens", str(step_tokens))]


def _vllm(stack: Stack) -> list[Service]:
    """vLLM is not waited for: the service in front is ready once a completion has come through."""
    folder = vllm_folder(stack.root)
    command = [sys.executable, "-m", "trainer.inference.vllm.command", "--python", str(prepare.python_of(folder))]
    command += ["--model", stack.model, "--port", str(stack.ports["vllm"])]
    is_ready = partial(answers, stack.url("vllm") + "/health")
    options = ("--upstream", stack.url("vllm"), "--base-through-zero-adapter")
    return [
        Service(
            "vllm",
            command,
            stack.environment(),
            is_ready,
            start_deadline_s=VLLM_START_DEADLINE_S,
            before=partial(_require_vllm, folder),
            others_wait=False,
        ),
        model_service(stack, "inference", "trainer.inference.vllm", *options, start_deadline_s=VLLM_START_DEADLINE_S),
    ]


def vllm_folder(root: Path) -> Path:
    """It takes minutes to install and is the same for every stack of a machine, so it can be shared."""
    return Path(os.environ.get("ROOTSTOCK_VLLM_DIR") or root / "vllm").resolve()


def _require_vllm(folder: Path) -> None:
    if not prepare.is_ready(folder):
        command = f"{sys.executable} -m trainer.inference.vllm.prepare --folder {folder}"
        raise RuntimeError(f"vLLM is not installed at {folder}; run `{command}`")

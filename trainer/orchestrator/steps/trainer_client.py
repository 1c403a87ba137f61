"""Client of the trainer service for one run: claim a slot, step, checkpoint, give the slot back.

Knows the trainer's codes and what to do about each. Refuses to know tensors and rollouts. A trainer that restarted has
forgotten the run: it is claimed again, resumes from its own committed state, and the call is repeated (steps are idempotent).
"""

import asyncio
from collections.abc import Callable

import httpx

from trainer.contracts.adapters import LoraSpec
from trainer.contracts.events import FailureCode
from trainer.contracts.internal import AttemptSpec
from trainer.contracts.run_config import RunConfig
from trainer.contracts.samples import TrainBatch
from trainer.contracts.training import (
    CheckpointRequest,
    CheckpointWritten,
    LossSpec,
    OpenRun,
    OptimizerSpec,
    RunOpened,
    StepRequest,
    StepResult,
)
from trainer.orchestrator.attempt.endings import StaleLease, failed
from trainer.orchestrator.attempt.services import Service, error_code

SLOT_POLL_S = 2.0


def open_request(spec: AttemptSpec, config: RunConfig) -> OpenRun:
    """The trainer's view of a run's configuration."""
    optimizer = config.optimizer
    return OpenRun(
        team_id=spec.team_id,
        fencing_token=spec.fencing_token,
        lora=LoraSpec(rank=config.lora_rank, alpha=config.lora_alpha, target_modules=spec.base_model.target_modules),
        optimizer=OptimizerSpec(
            learning_rate=config.learning_rate,
            betas=optimizer.betas,
            weight_decay=optimizer.weight_decay,
            warmup_steps=optimizer.warmup_steps,
            schedule=optimizer.schedule,
            total_steps=config.max_steps,
            max_grad_norm=optimizer.max_grad_norm,
        ),
        loss=LossSpec(kind=config.algorithm.loss),
        seed=config.seed,
        init_from=spec.init_from,
        is_fork=spec.position is not None,
    )


class TrainerClient:
    """`on_wait` is told while the run waits for a slot."""

    def __init__(self, service: Service, run_id: str, request: OpenRun, *, on_wait: Callable[[str], None]):
        self._service = service
        self._path = f"/runs/{run_id}"
        self._request = request
        self._on_wait = on_wait

    async def open(self, total_steps: int) -> RunOpened:
        """Claim a slot; waits while there is none. The schedule of the learning rate counts on `total_steps`."""
        optimizer = self._request.optimizer.model_copy(update={"total_steps": total_steps})
        self._request = self._request.model_copy(update={"optimizer": optimizer})
        return await self._claim()

    async def _claim(self) -> RunOpened:
        while True:
            response = await self._service.call("PUT", self._path, self._request)
            if error_code(response) != "no_free_slot":
                return RunOpened.model_validate_json(self._checked(response).content)
            self._on_wait("waiting for a free slot on the trainer")
            await asyncio.sleep(SLOT_POLL_S)

    async def step(self, batch: TrainBatch) -> StepResult:
        request = StepRequest(fencing_token=self._request.fencing_token, batch=batch)
        response = await self._reopening("POST", "/steps", request)
        return StepResult.model_validate_json(response.content)

    async def checkpoint(self) -> CheckpointWritten:
        request = CheckpointRequest(fencing_token=self._request.fencing_token)
        response = await self._reopening("POST", "/checkpoints", request)
        return CheckpointWritten.model_validate_json(response.content)

    async def close(self) -> None:
        """Give the slot back. A run that the trainer does not know has none."""
        response = await self._service.call("DELETE", f"{self._path}?fencing_token={self._request.fencing_token}")
        if error_code(response) != "run_not_open":
            self._checked(response)

    async def _reopening(self, method: str, path: str, request: StepRequest | CheckpointRequest) -> httpx.Response:
        response = await self._service.call(method, self._path + path, request)
        if error_code(response) == "run_not_open":
            await self._claim()
            response = await self._service.call(method, self._path + path, request)
        return self._checked(response)

    def _checked(self, response: httpx.Response) -> httpx.Response:
        if response.is_success:
            return response
        code, text = error_code(response), response.text[:2000]
        if code == "stale_lease":
            raise StaleLease(f"the trainer serves a newer attempt: {text}")
        reason = FailureCode.NON_FINITE if code == "non_finite" else FailureCode.TRAINER_REFUSED
        raise failed(reason, f"the trainer refused ({response.status_code}): {text}")

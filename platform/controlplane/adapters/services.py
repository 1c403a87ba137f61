"""Writes to adapters: one transaction each, no network. The engines learn of a wish through the outbox and the reconciler."""

from django.db import transaction

from controlplane.adapters import access
from controlplane.adapters.errors import NotServable
from controlplane.adapters.models import Adapter, DeploymentStatus
from controlplane.adapters.preflight import servable_problems
from controlplane.core import outbox
from controlplane.core.clock import now
from controlplane.core.errors import Conflict
from controlplane.pools.limits import limits_of
from controlplane.runs.access import access_checkpoint
from controlplane.runs.models import Run
from controlplane.teams.actors import Actor
from controlplane.webhooks.models import EventType
from controlplane.webhooks.publishing import page_url, publish
from trainer.contracts.catalogue import load_catalogue
from trainer.contracts.internal import VersionReport

RECONCILE_TASK = "deployments.reconcile"
ERROR_LENGTH_MAX = 2_000


@transaction.atomic
def record_version(run: Run, report: VersionReport) -> Adapter:
    """A run's version exists. Idempotent by (run, version); a later report may keep what an earlier one did not.

    Raises Conflict when the version is known with other weights: versions are immutable.
    """
    spec = load_catalogue()[run.base_model]
    adapter, _ = Adapter.objects.get_or_create(
        run=run,
        version=report.version,
        defaults={
            "team_id": run.team_id,
            "pool_id": run.pool_id,
            "step": report.step,
            "base_model": run.base_model,
            "digest": report.adapter_digest,
            "path": report.path,
            "size_bytes": report.size_bytes,
            "lora_rank": run.config["lora_rank"],
            "target_modules": list(spec.target_modules),
            "is_kept": report.keep,
        },
    )
    if adapter.digest != report.adapter_digest:
        raise Conflict(f"version {report.version} exists with other weights", hint="Report the new weights as a new version.")
    if report.keep and not adapter.is_kept:
        _keep(adapter)
    if report.keep:
        _retire_older(run)
    return adapter


@transaction.atomic
def deploy_adapter(actor: Actor, adapter_id: str) -> Adapter:
    """Wish the adapter served. Asking twice is one wish. Raises NotServable naming the pool's limit."""
    return _deploy(access.access_adapter(actor, adapter_id, lock=True))


@transaction.atomic
def deploy_checkpoint(actor: Actor, checkpoint_id: str) -> Adapter:
    """Wish the adapter version of a checkpoint's step served, and keep it from now on."""
    checkpoint = access_checkpoint(actor, checkpoint_id)
    adapter = access.access_version(actor, checkpoint.run_id, checkpoint.step, lock=True)
    if not adapter.is_kept:
        _keep(adapter)
    return _deploy(adapter)


@transaction.atomic
def unload_adapter(actor: Actor, adapter_id: str) -> Adapter:
    """Wish the adapter no longer served. The gateway refuses it from this commit on; engines drop it afterwards."""
    adapter = access.access_adapter(actor, adapter_id, lock=True)
    if adapter.is_wanted or adapter.deployment_status in {DeploymentStatus.DEPLOY_FAILED, DeploymentStatus.UNLOAD_FAILED}:
        _wish(adapter, is_wanted=False, status=DeploymentStatus.UNLOADING)
    return adapter


@transaction.atomic
def record_deployed(adapter_id: str, generation: int, *, digest: str) -> bool:
    """Every engine of the pool holds the adapter. False when the team changed its mind meanwhile."""
    adapter = access.lock_for_reconciler(adapter_id, generation)
    if adapter is None:
        return False
    if adapter.deployment_status != DeploymentStatus.DEPLOYED:
        adapter.deployed_at = now()
        _tell_webhooks(adapter, EventType.DEPLOYMENT_READY)
    return _observe(adapter, DeploymentStatus.DEPLOYED, digest=digest)


@transaction.atomic
def record_unloaded(adapter_id: str, generation: int) -> bool:
    adapter = access.lock_for_reconciler(adapter_id, generation)
    if adapter is None:
        return False
    adapter.deployed_at = None
    return _observe(adapter, DeploymentStatus.NOT_DEPLOYED)


@transaction.atomic
def record_trouble(adapter_id: str, generation: int, *, error: str, is_final: bool) -> bool:
    """The engines did not follow. Final: they never will, and the wish has failed; otherwise the reconciler tries again."""
    adapter = access.lock_for_reconciler(adapter_id, generation)
    if adapter is None:
        return False
    failed = DeploymentStatus.DEPLOY_FAILED if adapter.is_wanted else DeploymentStatus.UNLOAD_FAILED
    going = DeploymentStatus.DEPLOYING if adapter.is_wanted else DeploymentStatus.UNLOADING
    if is_final and adapter.is_wanted:
        _tell_webhooks(adapter, EventType.DEPLOYMENT_FAILED, error)
    return _observe(adapter, failed if is_final else going, error=error)


def _deploy(adapter: Adapter) -> Adapter:
    if adapter.base_model not in load_catalogue() or adapter.pool is None:
        raise NotServable(f"{adapter.base_model} is not served here any more")
    described = {"r": adapter.lora_rank, "target_modules": adapter.target_modules}
    problems = servable_problems(limits_of(adapter.pool), described)
    if problems:
        raise NotServable("; ".join(problems))
    if not adapter.is_wanted or adapter.deployment_status == DeploymentStatus.DEPLOY_FAILED:
        _wish(adapter, is_wanted=True, status=DeploymentStatus.DEPLOYING)
    return adapter


def _wish(adapter: Adapter, *, is_wanted: bool, status: DeploymentStatus) -> None:
    adapter.is_wanted = is_wanted
    adapter.generation += 1
    _observe(adapter, status)
    key = f"adapter:{adapter.pk}:wish:{adapter.generation}"
    outbox.emit(task=RECONCILE_TASK, key=key, payload={"adapter_id": adapter.pk})


def _observe(adapter: Adapter, status: DeploymentStatus, *, digest: str = "", error: str = "") -> bool:
    adapter.deployment_status = status
    adapter.deployed_digest = digest
    adapter.deployment_error = error[:ERROR_LENGTH_MAX]
    adapter.updated_at = now()
    adapter.save()
    return True


def _tell_webhooks(adapter: Adapter, event: EventType, reason: str = "") -> None:
    names = {"adapter_id": adapter.pk, "run_id": adapter.run_id, "name": adapter.display_name, "model": adapter.served_name}
    why = {"reason": reason[:ERROR_LENGTH_MAX], "url": page_url("/models")}
    publish(adapter.team_id, event, key=f"{adapter.pk}:{adapter.generation}", data=names | why)


def _keep(adapter: Adapter) -> None:
    adapter.is_kept = True
    adapter.save(update_fields=["is_kept"])


def _retire_older(run: Run) -> None:
    """Only the newest `adapters.keep_last` versions stay deployable (-1: all), and what is wished served. The newest one always
    stays: a run that leaves nothing would have been for nothing."""
    keep_last = run.config["adapters"]["keep_last"]
    if keep_last >= 0:
        kept = Adapter.objects.filter(run=run, is_kept=True).order_by("-version").values_list("id", flat=True)
        retired = list(kept[max(1, keep_last) :])
        Adapter.objects.filter(id__in=retired, is_wanted=False).update(is_kept=False, updated_at=now())

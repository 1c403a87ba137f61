"""Makes the engines hold what teams wish served, and drop what they no longer do.

The wish is a row; the engines are asked what they hold, told the difference, and what they answer is written down while the wish
is still the newest. An engine that restarted holds nothing: the sweep loads it again. No transaction is open while an engine is
being spoken to.
"""

from django.conf import settings

from controlplane.adapters import access, queries, services
from controlplane.adapters.errors import EngineRefused, EngineUnreachable
from controlplane.adapters.gateways import EngineGateway, HttpEngines
from controlplane.adapters.models import Adapter, DeploymentStatus
from workers.app import app


@app.task(name=services.RECONCILE_TASK)
def reconcile(adapter_id: str) -> None:
    with HttpEngines(token=settings.POOL_TOKEN) as engines:
        settle(access.adapter_for_reconciler(adapter_id), Holdings(engines))


@app.task(name="deployments.sweep")
def sweep() -> int:
    with HttpEngines(token=settings.POOL_TOKEN) as engines:
        holdings = Holdings(engines)
        adapters = queries.to_reconcile()
        for adapter in adapters:
            settle(adapter, holdings)
    return len(adapters)


class Holdings:
    """What each engine holds, asked once a sweep however many adapters are looked at."""

    def __init__(self, engines: EngineGateway) -> None:
        self.engines = engines
        self._seen: dict[str, dict[str, str]] = {}

    def at(self, url: str) -> dict[str, str]:
        if url not in self._seen:
            self._seen[url] = self.engines.loaded(url)
        return self._seen[url]


def settle(adapter: Adapter, holdings: Holdings) -> None:
    """Bring the engines of the adapter's pool to its wish, and write down what they did."""
    try:
        if adapter.is_wanted:
            _serve(adapter, holdings)
        else:
            _drop(adapter, holdings)
    except EngineUnreachable as error:
        services.record_trouble(adapter.pk, adapter.generation, error=str(error), is_final=False)
    except EngineRefused as error:
        services.record_trouble(adapter.pk, adapter.generation, error=str(error), is_final=True)


def _serve(adapter: Adapter, holdings: Holdings) -> None:
    order = queries.load_order(adapter)
    for url in _engine_urls(adapter):
        digest = holdings.at(url).get(adapter.engine_name) or holdings.engines.load(url, order).digest
        if digest != adapter.digest:
            raise EngineRefused(f"the engine holds {adapter.engine_name} with digest {digest}, not {adapter.digest}")
    if adapter.deployment_status != DeploymentStatus.DEPLOYED:
        services.record_deployed(adapter.pk, adapter.generation, digest=adapter.digest)


def _drop(adapter: Adapter, holdings: Holdings) -> None:
    """The gateway refuses the adapter already; this frees the engines' memory, unless its run still samples from it."""
    if not queries.is_held_by_run(adapter):
        for url in _engine_urls(adapter):
            if adapter.engine_name in holdings.at(url):
                holdings.engines.unload(url, adapter.engine_name)
    services.record_unloaded(adapter.pk, adapter.generation)


def _engine_urls(adapter: Adapter) -> list[str]:
    return adapter.pool.inference_urls if adapter.pool else []

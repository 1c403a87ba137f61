"""Names never change their weights; RAM is bounded; what was given up comes back from disk."""

import asyncio
import shutil

import pytest

from tests.factories.engines import reader_of, small_limits
from tests.factories.tiny_llama import write_adapter
from trainer.contracts.adapters import WEIGHTS_NAME
from trainer.inference.adapter_store import AdapterStore
from trainer.inference.errors import AdapterFilesMissing, BadRequest, InvalidAdapter, ModelNotFound, NameTaken, Saturated
from trainer.inference.metrics import EngineMetrics


class CountingReader:
    """The real reader, and how often it went to disk."""

    def __init__(self, reader):
        self._reader = reader
        self.reads = []
        self.folder = reader.folder

    def read(self, folder, *, digest):
        self.reads.append(folder.name)
        return self._reader.read(folder, digest=digest)


@pytest.fixture
def disk(tmp_path, model):
    """Three committed adapters: name → (path, digest)."""
    return {name: (str(tmp_path / name), write_adapter(tmp_path / name, model, seed=seed)) for seed, name in enumerate("abc")}


@pytest.fixture
def make_store(tmp_path, model):
    stores = []

    def make(**limits):
        reader = CountingReader(reader_of(tmp_path, model))
        stores.append(AdapterStore(reader, small_limits(**limits), EngineMetrics(), reserved_name="base"))
        return stores[-1], reader

    yield make
    for store in stores:
        store.close()


async def test_loading_again_is_free_and_other_weights_are_refused(make_store, disk):
    store, reader = make_store()
    (path, digest), (other_path, other_digest) = disk["a"], disk["b"]
    first = await store.register("r.v1", path, digest)
    assert await store.register("r.v1", path, digest) == first
    assert await store.register("r.v1", path, None) == first
    for wanted in (other_digest, None):
        with pytest.raises(NameTaken):
            await store.register("r.v1", other_path, wanted)
    assert reader.reads.count("a") == 2  # the second read was asked for without a digest, so only the file could tell
    assert (await store.weights("r.v1"))[1].digest == digest


async def test_two_racing_loads_of_one_name_have_one_winner(make_store, disk):
    store, _ = make_store()
    results = await asyncio.gather(*(store.register("r.v1", *disk[name]) for name in ("a", "b", "a")), return_exceptions=True)
    digests = {result.digest for result in results if not isinstance(result, Exception)}
    assert len(digests) == 1
    assert sum(isinstance(result, NameTaken) for result in results) in (1, 2)


async def test_many_requests_for_an_evicted_adapter_read_it_once(make_store, disk):
    store, reader = make_store(adapter_ram_bytes=1)
    for name, (path, digest) in disk.items():
        await store.register(name, path, digest)
    reader.reads.clear()
    found = await asyncio.gather(*(store.weights("a") for _ in range(20)))
    assert {weights.digest for _, weights in found} == {disk["a"][1]}
    assert reader.reads == ["a"]


async def test_ram_keeps_the_most_recently_used(make_store, disk):
    store, reader = make_store(adapter_ram_bytes=int(2.5 * 4 * 20_000))
    await store.register("a", *disk["a"])
    size = (await store.weights("a"))[1].size_bytes
    store, reader = make_store(adapter_ram_bytes=int(2.5 * size))
    for name in "ab":
        await store.register(name, *disk[name])
    await store.weights("a")
    await store.register("c", *disk["c"])
    reader.reads.clear()
    for name in "acb":
        await store.weights(name)
    assert reader.reads == ["b"]


async def test_an_evicted_adapter_whose_file_changed_is_not_served(make_store, disk, tmp_path):
    store, _ = make_store(adapter_ram_bytes=1)
    await store.register("a", *disk["a"])
    await store.register("b", *disk["b"])
    shutil.copy(tmp_path / "c" / WEIGHTS_NAME, tmp_path / "a" / WEIGHTS_NAME)
    with pytest.raises(InvalidAdapter, match="hashes to"):
        await store.weights("a")
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(AdapterFilesMissing):
        await store.weights("a")


async def test_unregistering_frees_the_name_and_the_memory_of_its_last_user(make_store, disk):
    store, reader = make_store()
    await store.register("one", *disk["a"])
    await store.register("two", *disk["a"])
    store.unregister("one")
    with pytest.raises(ModelNotFound):
        await store.weights("one")
    reader.reads.clear()
    await store.weights("two")
    assert reader.reads == []
    store.unregister("two")
    with pytest.raises(ModelNotFound):
        store.unregister("two")
    await store.register("one", *disk["b"])  # the name is free again
    assert [known.digest for known in store.list()] == [disk["b"][1]]


async def test_names_and_their_number_are_bounded(make_store, disk):
    store, _ = make_store(adapters_registered_max=1)
    for name in ("base", ""):
        with pytest.raises(BadRequest):
            await store.register(name, *disk["a"])
    await store.register("a", *disk["a"])
    with pytest.raises(Saturated):
        await store.register("b", *disk["b"])

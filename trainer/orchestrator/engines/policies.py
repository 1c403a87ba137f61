"""The policy versions of this attempt that may answer a model call, and the one that new groups are dispatched on.

Knows names, digests and which versions are still wanted. Refuses to know engines: who publishes has loaded first.
"""

from dataclasses import dataclass

from trainer.contracts.base import Sha256


@dataclass(frozen=True, slots=True)
class Policy:
    """`engine_name` is immutable; `digest` is what every reply under that name must carry. `path` is absolute, None for a base
    model. `keep` says that the version is deployable: it is never unloaded from here."""

    engine_name: str
    digest: Sha256
    version: int = 0
    path: str | None = None
    keep: bool = False


class PolicyTable:
    """`current` raises LookupError before the first publication."""

    def __init__(self) -> None:
        self._by_name: dict[str, Policy] = {}
        self._current: Policy | None = None
        self._held: dict[str, int] = {}

    @property
    def current(self) -> Policy:
        if self._current is None:
            raise LookupError("no policy version has been published yet")
        return self._current

    def publish(self, policy: Policy) -> None:
        self._by_name[policy.engine_name] = policy
        self._current = policy

    def add(self, policy: Policy) -> None:
        """A policy that is not the run's own (a teacher) may answer from now on. It is never current and never retired."""
        self._by_name.setdefault(policy.engine_name, policy)
        self.hold(policy)

    def find(self, engine_name: str) -> Policy | None:
        return self._by_name.get(engine_name)

    def all(self) -> list[Policy]:
        return list(self._by_name.values())

    def hold(self, policy: Policy) -> None:
        """Keep a version for a reader other than the training groups (an evaluation)."""
        self._held[policy.engine_name] = self._held.get(policy.engine_name, 0) + 1

    def release(self, policy: Policy) -> None:
        self._held[policy.engine_name] -= 1

    def retire(self, versions_in_use: set[int]) -> list[Policy]:
        """Forget the versions that nothing samples from any more. Returns those to unload from the engines."""
        gone = [
            policy
            for name, policy in self._by_name.items()
            if policy is not self._current and policy.version not in versions_in_use and not self._held.get(name)
        ]
        for policy in gone:
            del self._by_name[policy.engine_name]
        return [policy for policy in gone if policy.path is not None and not policy.keep]

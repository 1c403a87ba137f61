"""Which environment's turn it is: a smooth weighted round-robin, the same order on every machine.

Knows ratios. Refuses to know randomness: over any prefix each environment is within one group of its share.
"""

from collections.abc import Mapping


class Mixture:
    """`ratios` are positive and need not sum to one."""

    def __init__(self, ratios: Mapping[str, float]):
        total = sum(ratios.values())
        self._shares = {name: ratio / total for name, ratio in ratios.items()}
        self._credit = dict.fromkeys(ratios, 0.0)

    def next(self) -> str:
        for name, share in self._shares.items():
            self._credit[name] += share
        chosen = max(self._credit, key=lambda name: self._credit[name])
        self._credit[chosen] -= 1.0
        return chosen

    def skip(self, count: int) -> None:
        """Advance past turns that an earlier attempt has taken."""
        for _ in range(count):
            self.next()

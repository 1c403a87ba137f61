"""Running sequences that have a prompt in common: rollouts of one task compute it once.

Knows who may read whose keys: the same prompt under the same adapter, for the same tenant. Refuses to know storage and weights.
The first member of a group computes the prompt; those that come later start behind it and are never ahead of it in a step.
"""

from trainer.inference.sequence import Sequence

Key = tuple[str, int, tuple[int, ...]]


class SharedPrompts:
    """Groups of running sequences, each in the order of admission. Without a cache salt nothing is shared: how fast an answer
    comes would tell one tenant what another asked."""

    def __init__(self, block_tokens: int):
        self._block_tokens = block_tokens
        self._groups: dict[Key, list[Sequence]] = {}

    def join(self, sequence: Sequence) -> tuple[Sequence | None, int]:
        """Enter the sequence's group. Returns the member whose blocks it may read, and how many: whole blocks of the prompt,
        and so few that two tokens are left, with which it counts as a prompt and waits its turn."""
        key = _key(sequence)
        if key is None or (blocks := (len(sequence.prompt) - 2) // self._block_tokens) < 1:
            return None, 0
        group = self._groups.setdefault(key, [])
        group.append(sequence)
        return (group[0], blocks) if len(group) > 1 else (None, 0)

    def leave(self, sequence: Sequence) -> Sequence | None:
        """Take the sequence out of its group. Returns who must compute the prompt from now on, where that has changed."""
        key = _key(sequence)
        if key is None or sequence not in (group := self._groups.get(key, [])):
            return None
        was_first = group[0] is sequence
        group.remove(sequence)
        if group:
            return group[0] if was_first else None
        del self._groups[key]
        return None


def _key(sequence: Sequence) -> Key | None:
    """A prompt that is scored is computed in full by whoever asks."""
    if not sequence.cache_salt or sequence.prompt_top_logprobs is not None:
        return None
    return sequence.cache_salt, sequence.adapter_key, tuple(sequence.prompt)

"""Which rollouts a run may leave out of its batches, and from which thresholds on.

Knows names, limits and defaults. What is looked for stands in `trainer.orchestrator.groups.filters`.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from trainer.contracts.base import Wire


class FilterBase(Wire):
    """Fields whose docstrings are the user's documentation, as in `run_config`."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class ZeroAdvantageFilter(FilterBase):
    type: Literal["zero_advantage"]
    """Groups that teach nothing: no advantage but 0, and no weight of another component."""
    enforce: bool = True
    """Leave out what is found, and fill the batch with others. Otherwise it is counted alone."""


class RepetitionFilter(FilterBase):
    type: Literal["repetition"]
    """Replies that hang in a loop: `window` tokens in a row, each of which the policy was sure of."""
    enforce: bool = False
    """Leave out what is found, and fill the batch with others. Otherwise it is counted alone."""
    window: Annotated[int, Field(ge=2, le=100_000)] = 3_000
    """Tokens in a row within one reply."""
    prob_threshold: Annotated[float, Field(gt=0, lt=1)] = 0.99
    """Each is sampled with a probability above this."""


class GibberishFilter(FilterBase):
    type: Literal["gibberish"]
    """Replies with a rare token that the policy hardly believed in itself."""
    enforce: bool = False
    """Leave out what is found, and fill the batch with others. Otherwise it is counted alone."""
    token_id_threshold: Annotated[int, Field(ge=0)] = 100_000
    """Rare are tokens with an id above this: vocabularies are ordered by frequency."""
    logprob_threshold: Annotated[float, Field(lt=0, ge=-100)] = -14.0
    """Hardly believed are those with a log-probability below this; chance alone gives −11.9 among 150,000 tokens."""


RolloutFilter = Annotated[ZeroAdvantageFilter | RepetitionFilter | GibberishFilter, Field(discriminator="type")]
FilterType = Literal["zero_advantage", "repetition", "gibberish"]

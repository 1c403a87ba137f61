"""Options of each algorithm, so that a run with a wrong one is refused when it is asked for and not when it starts.

Knows names, types and defaults. What they do stands in `trainer/algorithms`.
"""

from trainer.contracts.base import Wire


class GrpoOptions(Wire):
    divide_by_std: bool = False


OPTIONS: dict[str, type[Wire]] = {"grpo": GrpoOptions}

"""The same bits for the same pass, on a device whose quickest kernels add in whatever order their threads arrive.

Knows torch's process-wide switches. Refuses to know models and passes. On a CPU there is nothing to switch.
"""

import os

import torch
from torch.utils import deterministic


def fix_order_of_sums(device: torch.device | str) -> None:
    """Call before the first product on the device: what a neighbour sends must not move a bit of a run's gradient, and without
    this the attention's backward pass moves some from one call to the next.

    Where torch has no such kernel it warns and goes on: an operation that raises would end every run of the pool.
    """
    if torch.device(device).type != "cuda":
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # The fill finds reads of memory that nobody wrote, and costs a write of every buffer.
    deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.use_deterministic_algorithms(True, warn_only=True)

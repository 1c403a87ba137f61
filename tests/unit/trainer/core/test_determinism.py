"""The switches of a CUDA device, and none for a CPU. What they do there, `make gpu-check` shows."""

import torch

from trainer.core.determinism import fix_order_of_sums


def test_a_cuda_device_gets_a_fixed_order_and_a_cpu_is_left_alone(monkeypatch):
    called = []
    monkeypatch.setattr(torch, "use_deterministic_algorithms", lambda *given, **options: called.append((given, options)))
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    fix_order_of_sums("cpu")
    assert called == []
    fix_order_of_sums("cuda:1")
    assert called == [((True,), {"warn_only": True})]
    assert not torch.utils.deterministic.fill_uninitialized_memory

"""The multi-tenant LoRA trainer: one frozen base model, many adapters, packed forward and backward passes.

Knows tensors and files. Refuses to know HTTP, fencing tokens, environments and the names of algorithms.
"""

"""The trainer's HTTP service: `python -m trainer.service`.

Knows requests, leases and threads. Refuses to know how a gradient is computed (`trainer.core`) and what a rollout is.
"""

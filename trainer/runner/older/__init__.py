"""Packages of the interface before `Taskset`: a function `load_environment`, as verifiers had it until 0.3.1.

Knows that version of the library, whose package has `verifiers.v1` too and shall not load it. Refuses what it cannot play in
words (`refusals`), and says what the library keeps to itself: a reward that raises is a failed rollout here, and no 0.
"""

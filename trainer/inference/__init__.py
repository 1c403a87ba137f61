"""The engine: one base model in memory, every team's adapters on it, behind an OpenAI- and vLLM-shaped HTTP face.

Knows token ids, weights, and whose adapter a request names. Refuses to know teams' money, runs, rewards, and how adapters are
trained: an adapter is a folder with a digest.
"""

"""vLLM as a backend: our routes, names, digests and errors in front; a vLLM server that samples tokens behind.

Knows vLLM's HTTP alone and imports nothing of it: it runs in a virtual environment or image of its own. What callers see is the
same as in front of our own engine, so neither orchestrator nor gateway knows which of the two answers.
"""

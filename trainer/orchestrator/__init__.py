"""One run, hosted evaluation or release check: the trusted process between tenant code, the engines and the trainer.

Knows rollouts, groups, staleness, batches and who must be told what, in which order. Refuses to know tensors, databases and
tenant code: environments run behind a socket, weights behind HTTP. `run.loop` explains what happens when any of them dies.
"""

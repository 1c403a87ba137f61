"""What runs inside a sandbox: one environment, loaded once, and the HTTP service that plays its rollouts.

Knows `verifiers` and the wire types of `trainer.contracts`. Refuses to know runs, teams, adapters, prices, or any address but two
sockets in one folder. It shares its process with tenant code, so nothing here is a secret and nothing it says is trusted outside.
"""

"""What can go wrong with pools and leases, apart from what the API's own errors say."""


class LeaseTaken(RuntimeError):
    """The subject already has a live lease: starting it again is a no-op for the caller, never a second process."""


class NoPool(LookupError):
    """No pool serves the base model."""

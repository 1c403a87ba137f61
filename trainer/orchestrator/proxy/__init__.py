"""The only model endpoint of a sandbox, and everything that was seen there."""

"""The catalogue of base models: one TOML per model, the small ones with their weights beside it.

Knows files only; `trainer.contracts.catalogue` reads them. `make_tiny` makes the model that ships with the package.
"""

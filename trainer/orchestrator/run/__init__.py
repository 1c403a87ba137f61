"""A training run: all parts wired, and the loop that drives them."""

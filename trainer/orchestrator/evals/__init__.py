"""An environment played without training on it, by itself or beside a run."""

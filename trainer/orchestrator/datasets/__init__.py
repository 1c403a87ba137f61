"""Rows that are learnt from without playing an environment."""

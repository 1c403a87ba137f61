"""Adapter versions and deployments."""

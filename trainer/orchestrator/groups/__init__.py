"""Rollouts of one task together: kept in flight, accounted for, scored against each other."""

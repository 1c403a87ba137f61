"""Tenant code in its sandbox, from the start of its runner to the tasks that are drawn from it."""

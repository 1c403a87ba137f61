"""Secrets and variables: what a team hands to the sandboxes of its own work, by the names of environment variables."""

"""Wire types that two or more processes share.

Knows shapes, limits and names. Refuses to know: torch, Django, HTTP, files other than by name. Imports only the standard
library and pydantic, so that the control plane, the CLI and the sandboxed runner can all load it in milliseconds.
"""

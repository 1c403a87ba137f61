"""The whole stack on one machine, with no daemon to install.

Knows how to start, watch and stop PostgreSQL, Valkey and the processes of Rootstock under one folder. Refuses to know what
those processes do: it sees commands, environment variables, ports and health checks.
"""

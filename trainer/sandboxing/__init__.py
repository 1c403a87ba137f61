"""Boxes that tenant code runs in, the virtual environments inside them, and the environment runner started in one.

Knows processes, mounts, limits, wheels. Refuses to know: runs, teams, leases, money, HTTP of the control plane. Tenant code is
never imported here: it is packed, checked as bytes, and started inside a box.
"""

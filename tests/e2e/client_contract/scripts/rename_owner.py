"""Typed where a push finds no owner name: the published client's own library asks for the new one."""

import sys

from prime_cli.core import APIClient

print(APIClient().patch("/user/slug", json={"slug": sys.argv[1]}))
print(APIClient().get("/user/whoami")["data"]["slug"])

"""What every test can ask for: a PostgreSQL and a Valkey of their own, a clock that can be shifted, an empty object store.

The owner migrates a template once, each session works on a copy of it as the application's own role, so that row-level security
holds in tests as it does in production. Unit tests touch none of it.

`ROOTSTOCK_TEST_DIR` (default `.rootstock/test`) holds the servers; two sessions at a time need a folder each.
"""

import os
import tempfile

from django.conf import settings

_SCRATCH = tempfile.TemporaryDirectory(prefix="rootstock-test-")

# Django reads its settings once, before any fixture runs; the fixtures below point them at live servers.
os.environ |= {
    "DJANGO_SETTINGS_MODULE": "controlplane.settings",
    "DATABASE_URL": "postgresql://rootstock_app@/rootstock_test?host=/nonexistent",
    "BROKER_URL": "redis://127.0.0.1:9/0",
    "ROOTSTOCK_OBJECT_STORE_URL": f"file://{_SCRATCH.name}/objects",
    "ROOTSTOCK_SECRET_KEY": "a-secret-key-for-tests-and-nothing-else",
    "ROOTSTOCK_PUBLIC_ORIGIN": "http://testserver",
    "ROOTSTOCK_INTERNAL_URL": "http://127.0.0.1:9",
    "ROOTSTOCK_POOL_TOKEN": "a-pool-token-for-tests",
    "ROOTSTOCK_ARTIFACT_ROOT": f"{_SCRATCH.name}/artifacts",
    "ROOTSTOCK_RUNNER_DIR": f"{_SCRATCH.name}/runner",
    "ROOTSTOCK_LOG_DIR": f"{_SCRATCH.name}/logs",
}
os.environ.pop("DATABASE_ADMIN_URL", None)
# Touching them loads them, and pytest-django sets Django up where it finds loaded settings. Hashing passwords for real would be
# most of the suite's time.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

pytest_plugins = [
    "tests.fixtures.services",
    "tests.fixtures.database",
    "tests.fixtures.clients",
    "tests.fixtures.live_server",
    "tests.fixtures.runner",
]

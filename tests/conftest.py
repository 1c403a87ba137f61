"""What every test can ask for: a PostgreSQL and a Valkey of their own, a clock that can be shifted, an empty object store.

The owner migrates a template once, each session works on a copy of it as the application's own role, so that row-level security
holds in tests as it does in production. Unit tests touch none of it.

`ROOTSTOCK_TEST_DIR` (default `.rootstock/test`) holds the servers; two sessions at a time need a folder each.
"""

import os

from django.conf import settings

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.fixtures.settings"

# pytest-django sets Django up where it finds loaded settings; touching one loads them.
assert settings.USE_TZ

pytest_plugins = [
    "tests.fixtures.services",
    "tests.fixtures.database",
    "tests.fixtures.clients",
    "tests.fixtures.documented",
    "tests.fixtures.live_server",
    "tests.fixtures.live_stack",
    "tests.fixtures.s3",
    "tests.fixtures.runner",
    "tests.fixtures.models",
    "tests.fixtures.gates",
    "tests.fixtures.order",
]

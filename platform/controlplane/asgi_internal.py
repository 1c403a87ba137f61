"""The internal process: `uvicorn controlplane.asgi_internal:application`, on loopback or a private network only.

The same Django with another address space. The address space is chosen before Django reads it, so one process serves one of them.
"""

import os

from django.conf import settings
from django.core.asgi import get_asgi_application

from controlplane.core.body_limit import BodyLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
settings.ROOT_URLCONF = "controlplane.urls_internal"

# Django is set up by now: the tables can be named.
django_application = BodyLimit(get_asgi_application())

from controlplane.core.lifespan import Lifespan  # noqa: E402
from trainer.contracts.events import Component  # noqa: E402

application = Lifespan(django_application, Component.INTERNAL)

"""The public process: `uvicorn controlplane.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

from controlplane.core.body_limit import BodyLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

# Django is set up by now: the tables can be named.
django_application = BodyLimit(get_asgi_application())

from controlplane.core.lifespan import Lifespan  # noqa: E402
from trainer.contracts.events import Component  # noqa: E402

application = Lifespan(django_application, Component.WEB)

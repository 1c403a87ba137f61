"""The public process: `uvicorn controlplane.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

from controlplane.core.body_limit import BodyLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")

application = BodyLimit(get_asgi_application())

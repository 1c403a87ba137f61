"""Django's settings. `env` reads the variables, `base` turns them into settings; nothing else looks at the environment."""

from controlplane.settings.base import *  # noqa: F403

"""Django's settings from one parsed environment. Knows Django's names; refuses to read a variable itself."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from controlplane.settings.env import Environment, database_settings

_env = Environment.read(os.environ)
REPOSITORY = Path(__file__).resolve().parents[3]

SECRET_KEY = _env.secret_key.get_secret_value()
PUBLIC_ORIGIN = _env.public_origin.rstrip("/")
INTERNAL_URL = _env.internal_url
BROKER_URL = _env.broker_url
OBJECT_STORE_URL = _env.object_store_url
S3_ENDPOINT_URL = _env.s3_endpoint_url
S3_PUBLIC_URL = _env.s3_public_url
POOL_TOKEN = _env.pool_token.get_secret_value() if _env.pool_token else None
ARTIFACT_ROOT = _env.artifact_root
RUNNER_DIR = _env.runner_dir
LOG_DIR = _env.log_dir
SANDBOX_BACKEND = _env.sandbox_backend
PRIVATE_MODELS = _env.private_models
PRIVATE_WEBHOOKS = _env.private_webhooks
KEY_REQUESTS_PER_MINUTE = _env.key_requests_per_minute
TEAM_REQUESTS_PER_MINUTE = _env.team_requests_per_minute
INFERENCE_REQUESTS_PER_MINUTE = _env.inference_requests_per_minute
VISITOR_REQUESTS_PER_MINUTE = _env.visitor_requests_per_minute

DEBUG = False
_addresses = [urlsplit(url).hostname for url in (PUBLIC_ORIGIN, INTERNAL_URL) if url]
ALLOWED_HOSTS = [*filter(None, _addresses), "127.0.0.1", "localhost", "[::1]"]
ROOT_URLCONF = "controlplane.urls"
ASGI_APPLICATION = "controlplane.asgi.application"
APPEND_SLASH = False
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "teams.User"
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 2**20

# The addresses of `secrets` stand where an environment's name could, so they come before the hub's.
APPS = [
    "core",
    "teams",
    "secrets",
    "hub",
    "datasets",
    "runs",
    "ingest",
    "pools",
    "adapters",
    "inference",
    "evals",
    "billing",
    "audit",
    "webhooks",
    "web",
]
INSTALLED_APPS = [
    "django.contrib.sessions",
    "rest_framework",
    "drf_spectacular",
    *(f"controlplane.{app}" for app in APPS),
]
MIGRATION_MODULES = {app: f"migrations.{app}" for app in APPS}

DATABASES = {"default": database_settings(_env.database_url)}
if _env.database_admin_url:
    DATABASES["owner"] = database_settings(_env.database_admin_url)

MIDDLEWARE = [
    "controlplane.core.requests.RequestIdMiddleware",
    "controlplane.core.text.AddressMiddleware",
    "controlplane.web.headers.SecurityHeadersMiddleware",
    "controlplane.web.frontend.FrontendMiddleware",
    "controlplane.core.tenancy.TenancyMiddleware",
    "controlplane.core.problems.ProblemMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
]

FRONTEND_DIST = REPOSITORY / "frontend" / "dist"
TEMPLATES: list[dict[str, object]] = []

_https = PUBLIC_ORIGIN.startswith("https://")
SESSION_COOKIE_NAME = "rootstock_session"
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = _https
CSRF_COOKIE_NAME = "rootstock_csrf"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = _https
CSRF_TRUSTED_ORIGINS = [PUBLIC_ORIGIN]
CSRF_FAILURE_VIEW = "controlplane.core.problems.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "controlplane.teams.authentication.KeyAuthentication",
        "controlplane.teams.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["controlplane.teams.permissions.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["controlplane.core.text.ClientJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "controlplane.core.negotiation.AlwaysJson",
    "DEFAULT_SCHEMA_CLASS": "controlplane.core.openapi.OperationSchema",
    "EXCEPTION_HANDLER": "controlplane.core.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Rootstock",
    "VERSION": "1",
    "DESCRIPTION": "One API: the dashboard, the `prime` command and your own scripts speak it.",
    "OAS_VERSION": "3.1.0",
    "TAGS": [
        {"name": "teams", "description": "Users, teams, API keys and signing in."},
        {"name": "hub", "description": "Environments and their releases."},
        {"name": "secrets", "description": "Secrets and variables, of a team and of an environment."},
        {"name": "datasets", "description": "Files of rows that runs learn from."},
        {"name": "runs", "description": "Training runs and what they report."},
        {"name": "ingest", "description": "Runs that are trained elsewhere and report here."},
        {"name": "pools", "description": "The installation itself."},
        {"name": "evals", "description": "Evaluations, hosted and pushed."},
        {"name": "adapters", "description": "Adapters and their deployments."},
        {"name": "inference", "description": "OpenAI's API over the team's models, and its record."},
        {"name": "billing", "description": "Wallet, prices, usage and the ledger."},
        {"name": "audit", "description": "Who did what."},
        {"name": "webhooks", "description": "Addresses that are told what happened, and what was sent to them."},
    ],
    "SERVE_PUBLIC": True,
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "PREPROCESSING_HOOKS": ["controlplane.core.openapi.public_routes"],
    "POSTPROCESSING_HOOKS": [
        "controlplane.core.plain_operations.add_plain_operations",
        "controlplane.core.openapi.describe_operations",
    ],
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"redact": {"()": "controlplane.core.redaction.RedactFilter"}},
    "formatters": {"line": {"()": "controlplane.core.logs.JsonLineFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["redact"]}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django.server": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        # One line for every request to an engine otherwise; what fails is told by whoever asked.
        "httpx": {"level": "WARNING"},
    },
}

"""Routes of the gateway, below `/api/inference/v1` (see `controlplane.urls`)."""

from controlplane.core.routes import endpoint
from controlplane.inference import api, chat_api

urlpatterns = [
    *endpoint("chat/completions", chat_api.chat_completions),
    *endpoint("models", api.ModelsView),
    *endpoint("models/<path:model_id>", api.ModelView),
]

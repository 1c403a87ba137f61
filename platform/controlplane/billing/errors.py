"""What can go wrong with money, as the API tells it."""

from controlplane.core.errors import ApiError


class UnknownPrice(ApiError):
    """A meter was reported for a model that the price book has no price for. Nothing of the batch was recorded."""

    status = 422
    code = "unknown_price"

    def __init__(self, meter: str, model: str) -> None:
        super().__init__(
            f"there is no price for {meter} of model '{model}'", hint="Publish prices with `manage.py publish_prices`."
        )

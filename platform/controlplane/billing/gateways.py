"""How money comes in from outside: the contract, and the implementation for installations that take none.

Knows nothing of ledgers: a gateway says whether a payment is settled, `services` posts it.
"""

from typing import Protocol


class PaymentGateway(Protocol):
    """An outside payment system. `notice` is shown to whoever pays."""

    name: str
    settles_at_once: bool
    notice: str


class NullGateway:
    """Believes every payment at once. For embedded and test installations, and it says so."""

    name = "null"
    settles_at_once = True
    notice = "No payment system is configured: the amount was credited without a real payment."


def configured_gateway() -> PaymentGateway:
    return NullGateway()

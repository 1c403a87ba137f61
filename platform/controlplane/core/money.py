"""Amounts are integer micro-USD, everywhere. Knows conversion and display; refuses floats, and to know prices."""

from decimal import ROUND_FLOOR, Decimal

MICRO = 1_000_000


def microusd_floor(usd: Decimal) -> int:
    """The whole micro-dollars in `usd`, towards minus infinity: a fraction is never charged early."""
    return int((usd * MICRO).to_integral_value(rounding=ROUND_FLOOR))


def usd(amount_microusd: int) -> Decimal:
    return Decimal(amount_microusd) / MICRO


def format_usd(amount_microusd: int) -> str:
    """`-$0.001234`: at least two decimals, as many as the amount has, never rounded."""
    sign = "-" if amount_microusd < 0 else ""
    whole, fraction = divmod(abs(amount_microusd), MICRO)
    decimals = f"{fraction:06d}".rstrip("0").ljust(2, "0")
    return f"{sign}${whole:,}.{decimals}"

"""Exact arithmetic of a charge. Knows integers, decimals and fractions; refuses to know floats, rows and who pays.

One unit of any meter at `usd_per_million` US dollars per million units costs exactly that many micro-dollars, so the cumulative
amount of a subject is `quantity * usd_per_million` micro-USD, a rational number. What gets posted is always the floor of the
cumulative amount less what was posted before: the sum of all postings is then independent of how the quantity was split or
ordered, and differs from the exact amount by less than one micro-USD.
"""

from decimal import Decimal
from fractions import Fraction


def exact_microusd(quantity: int, usd_per_million: Decimal) -> Fraction:
    """The amount of `quantity` units before any rounding."""
    if quantity < 0:
        raise ValueError(f"quantity is {quantity}; usage is never negative")
    return Fraction(usd_per_million) * quantity


def amount_due_microusd(*, quantity_total: int, usd_per_million: Decimal, posted_microusd: int) -> int:
    """What is still to be posted once the cumulative quantity is `quantity_total`. Never negative while quantities only grow."""
    return exact_microusd(quantity_total, usd_per_million) // 1 - posted_microusd

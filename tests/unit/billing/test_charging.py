"""Promise: however usage is split and ordered, the posted sum is the floor of the exact amount (error below one micro-USD)."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.billing.charging import amount_due_microusd, exact_microusd

prices = st.decimals(min_value=0, max_value=1000, places=9)
quantities = st.lists(st.integers(min_value=0, max_value=10**12), max_size=50)


def post_all(parts: list[int], price: Decimal) -> list[int]:
    total, posted, postings = 0, 0, []
    for part in parts:
        total += part
        due = amount_due_microusd(quantity_total=total, usd_per_million=price, posted_microusd=posted)
        posted += due
        postings.append(due)
    return postings


@given(quantities, prices)
def test_error_of_any_split_is_below_one_microusd(parts: list[int], price: Decimal) -> None:
    error = exact_microusd(sum(parts), price) - sum(post_all(parts, price))
    assert 0 <= error < 1


@given(quantities, prices)
def test_no_posting_is_ever_negative(parts: list[int], price: Decimal) -> None:
    assert all(due >= 0 for due in post_all(parts, price))


@given(quantities.flatmap(st.permutations), prices)
def test_order_and_split_do_not_change_the_sum(parts: list[int], price: Decimal) -> None:
    assert sum(post_all(parts, price)) == sum(post_all(sorted(parts), price)) == sum(post_all([sum(parts)], price))


def test_one_million_units_cost_the_price_in_dollars() -> None:
    assert exact_microusd(1_000_000, Decimal("0.06")) == Fraction(60_000)


def test_small_requests_do_not_vanish() -> None:
    assert sum(post_all([7] * 1000, Decimal("0.02"))) == 140


def test_negative_usage_is_refused() -> None:
    with pytest.raises(ValueError, match="never negative"):
        exact_microusd(-1, Decimal(1))

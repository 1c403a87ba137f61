"""Micro-USD: conversion never rounds up, display never rounds at all."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.money import MICRO, format_usd, microusd_floor, usd


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_display_and_conversion_lose_nothing(amount: int):
    assert microusd_floor(usd(amount)) == amount
    assert microusd_floor(Decimal(format_usd(amount).replace("$", "").replace(",", ""))) == amount


@given(st.decimals(min_value=-1000, max_value=1000, places=9))
def test_a_fraction_is_never_charged_early(dollars: Decimal):
    assert 0 <= dollars * MICRO - microusd_floor(dollars) < 1


def test_display():
    assert [format_usd(amount) for amount in (0, 1, -1_500_000, 1_234_567_890)] == [
        "$0.00",
        "$0.000001",
        "-$1.50",
        "$1,234.56789",
    ]

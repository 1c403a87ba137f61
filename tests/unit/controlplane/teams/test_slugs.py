"""Public names: what is allowed, and that suggestions are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.errors import Invalid
from controlplane.teams.models import SLUG_LENGTH_MAX, SLUG_PATTERN
from controlplane.teams.slugs import RESERVED, check_slug, suggest_slug


@pytest.mark.parametrize("slug", ["ada", "a-1", "x" * SLUG_LENGTH_MAX, "007"])
def test_good_names(slug: str):
    assert check_slug(slug) == slug


@pytest.mark.parametrize("slug", ["", "ab", "-ada", "ada-", "Ada", "a_b", "ada\n", "x" * 31, "ä" * 5, *sorted(RESERVED)])
def test_refused_names(slug: str):
    with pytest.raises(Invalid):
        check_slug(slug)


@given(st.text(max_size=60))
def test_a_suggestion_is_always_well_formed(text: str):
    assert re.fullmatch(SLUG_PATTERN, suggest_slug(text)) and len(suggest_slug(text)) <= SLUG_LENGTH_MAX

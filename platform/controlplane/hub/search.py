"""Full-text search over environments: what is indexed of one, and what a reader's words ask for. Knows PostgreSQL's search.

Names are split at their hyphens. Every word counts as a beginning, so that results come while one types; English words count in
all their forms.
"""

import re
from typing import Any

from django.contrib.postgres.search import SearchQuery, SearchRank, SearchVector
from django.db.models import F, Q, QuerySet, Value

from controlplane.hub.models import Environment
from controlplane.hub.names import normalize

WORDS_MAX = 8
README_MAX_CHARACTERS = 100_000
"""PostgreSQL refuses texts whose words fill a megabyte."""


def document_of(name: str, tags: list[str], description: str, readme: str) -> Any:
    """An expression for `Environment.search`: a word in the name weighs most, one in the README least."""
    return (
        _part(normalize(name).replace("-", " "), "A", config="simple")
        + _part(" ".join(tags).replace("-", " "), "B")
        + _part(description, "C")
        + _part(readme[:README_MAX_CHARACTERS], "D")
    )


def _part(text: str, weight: str, config: str = "english") -> SearchVector:
    return SearchVector(Value(text.replace("\0", "")), weight=weight, config=config)


def matching(rows: QuerySet[Environment], text: str) -> QuerySet[Environment]:
    """Those that have every word of `text`, or the whole of it inside their name; annotated with how well, as `rank`."""
    words = re.findall(r"\w+", text)[:WORDS_MAX]
    named = Q(normalized_name__contains=normalize(text.strip()))
    if not words:
        return rows.filter(named).annotate(rank=Value(0.0))
    beginnings = " & ".join(f"'{word}':*" for word in words)
    asked = SearchQuery(beginnings, config="simple", search_type="raw") | SearchQuery(
        beginnings, config="english", search_type="raw"
    )
    return rows.filter(named | Q(search=asked)).annotate(rank=SearchRank(F("search"), asked))

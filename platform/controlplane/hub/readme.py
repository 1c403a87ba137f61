"""A README as HTML that may stand on our page: Markdown rendered, then cleaned. Pure.

What tenants write is hostile: raw HTML is not rendered, and the cleaner keeps only tags that show text. Images are kept as links,
since fetching one would tell its host who reads the page. A link to a file of the release opens it in the page's source tab; one
that leads nowhere on our page loses its address.
"""

import posixpath
from urllib.parse import urlencode, urlsplit

import nh3
from markdown_it import MarkdownIt

README_MAX_CHARACTERS = 500_000
TAGS = {
    "a", "blockquote", "br", "code", "dd", "del", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol",
    "p", "pre", "s", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"a": {"href", "title"}, "code": {"class"}, "ol": {"start"}, "td": {"align"}, "th": {"align"}}

_markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")


def readme_html(text: str) -> str:
    """Safe HTML of a Markdown text; what is too long is cut."""
    rendered = _markdown.render(text[:README_MAX_CHARACTERS])
    return nh3.clean(
        rendered,
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_address,
        url_schemes={"http", "https", "mailto"},
        link_rel="nofollow noopener noreferrer",
    )


def _address(tag: str, attribute: str, value: str) -> str | None:
    """An attribute's value as it stays, or None where it goes."""
    if (tag, attribute) != ("a", "href"):
        return value
    parts = urlsplit(value)
    if parts.scheme or parts.netloc:
        return value
    path = posixpath.normpath(parts.path)
    if path in {".", ".."} or path.startswith(("/", "../")):
        return None
    return "?" + urlencode({"tab": "source", "path": path})

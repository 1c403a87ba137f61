"""What a tenant writes into a README cannot act on our page."""

import pytest

from controlplane.hub.readme import readme_html


def test_markdown_becomes_html():
    made = readme_html("# Title\n\nSome *text* and `code`.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    assert "<h1>Title</h1>" in made and "<em>text</em>" in made and "<td>1</td>" in made


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "[click](javascript:alert(1))",
        '<img src=x onerror="alert(1)">',
        "<iframe src='https://evil.example'></iframe>",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
    ],
)
def test_nothing_active_survives(text):
    made = readme_html(text).lower()
    for active in ("<script", 'href="javascript', "<img", "<iframe", 'href="data'):
        assert active not in made


def test_an_image_is_not_fetched():
    assert "<img" not in readme_html("![pixel](https://evil.example/p.png)")


def test_a_link_passes_no_credit():
    assert 'rel="nofollow noopener noreferrer"' in readme_html("[x](https://example.org)")


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("docs/rewards.md", "?tab=source&amp;path=docs%2Frewards.md"),
        ("./LICENSE", "?tab=source&amp;path=LICENSE"),
        ("a/../b.py#L3", "?tab=source&amp;path=b.py"),
        ("https://example.org/x", "https://example.org/x"),
    ],
)
def test_a_link_to_a_file_of_the_release_opens_it_in_the_source(target, address):
    assert f'href="{address}"' in readme_html(f"[x]({target})")


@pytest.mark.parametrize("target", ["../other", "/settings", "#install", "?tab=versions", "a/../../b", "https://[broken"])
def test_a_link_that_leads_nowhere_on_our_page_has_no_address(target):
    made = readme_html(f"[the text]({target})")
    assert "href" not in made and "the text" in made

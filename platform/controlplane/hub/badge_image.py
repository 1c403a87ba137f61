"""The badge of a public environment as a picture, for READMEs elsewhere: what the check of its latest release has found.

Knows SVG. It holds words alone: no script, no font, no address.
"""

from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from controlplane.hub import access
from controlplane.hub.models import Badge

CHARACTER_PX = 7
PADDING_PX = 10
FRESH_S = 60
LOOKS = {
    Badge.GREEN: ("check passed", "#2e7d4f"),
    Badge.RED: ("check failed", "#b3392f"),
    Badge.BUILDING: ("being checked", "#8a6d1c"),
    Badge.PENDING: ("waiting for its check", "#8a6d1c"),
}
NO_RELEASE = ("no release", "#666666")
SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{name}: {text}">
<title>{name}: {text}</title>
<rect width="{width}" height="20" rx="3" fill="#444444"/>
<rect x="{split}" width="{rest}" height="20" rx="3" fill="{colour}"/>
<g fill="#ffffff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{left}" y="14">{name}</text>
<text x="{right}" y="14">{text}</text>
</g>
</svg>
"""


@require_safe
def environment_badge(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """A private environment has none: whoever shows a picture sends no credential."""
    environment = access.environment_by_name(None, owner, name)
    release = access.latest_release(environment)
    words, colour = LOOKS[Badge(release.badge)] if release else NO_RELEASE
    text = f"{release.version} {words}" if release else words
    answer = HttpResponse(_drawn(environment.name, text, colour), content_type="image/svg+xml")
    answer["Cache-Control"] = f"public, max-age={FRESH_S}"
    answer["Content-Security-Policy"] = "default-src 'none'"
    return answer


def _drawn(name: str, text: str, colour: str) -> str:
    split, rest = (len(part) * CHARACTER_PX + 2 * PADDING_PX for part in (name, text))
    centres = {"left": split // 2, "right": split + rest // 2}
    return format_html(SVG, width=split + rest, split=split, rest=rest, colour=colour, name=name, text=text, **centres)

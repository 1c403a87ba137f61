"""Two hundred READMEs that try to run something in the page that shows them: the corpus of R16 for rendered Markdown.

Every one would call `fired()` or fetch from another host, if the renderer let it through. Knows how browsers can be made to run
code. Refuses to know the renderer.
"""

from itertools import product

ELEMENTS = (
    "img src=x",
    "svg",
    "body",
    "video src=x",
    "audio src=x",
    "details open",
    "input autofocus",
    "marquee",
    "iframe",
    "a href=#",
)
HANDLERS = ("onerror", "onload", "onfocus", "ontoggle", "onstart", "onmouseover", "onanimationstart")
SCHEMES = (
    "javascript:fired()",
    "JaVaScRiPt:fired()",
    "java\tscript:fired()",
    "java&#10;script:fired()",
    "&#106;avascript:fired()",
    "&#x6A;avascript:fired()",
    "javascript&colon;fired()",
    "\u0001javascript:fired()",
    "javascript://%0afired()",
    "data:text/html,<script>parent.fired()</script>",
    "data:text/html;base64,PHNjcmlwdD5wYXJlbnQuZmlyZWQoKTwvc2NyaXB0Pg==",
    "vbscript:fired()",
    "blob:fired()",
)
LINKS = (
    "[read]({})",
    "[read](<{}>)",
    "[read][1]\n\n[1]: {}",
    "<{}>",
    "![seen]({})",
    '<a href="{}">read</a>',
    '<form action="{0}"><button formaction="{0}">go</button></form>',
)
FOREIGN = (
    "![seen](http://elsewhere.test/seen.png)",
    "<img src=http://elsewhere.test/seen.png>",
    "<link rel=stylesheet href=http://elsewhere.test/x.css>",
    "<style>@import 'http://elsewhere.test/x.css';</style>",
    "<base href=http://elsewhere.test/>\n\n[read](x)",
    "<meta http-equiv=refresh content='0;url=http://elsewhere.test/'>",
    "<object data=http://elsewhere.test/x></object>",
    "<embed src=http://elsewhere.test/x>",
    "<video poster=http://elsewhere.test/x></video>",
    "<picture><source srcset=http://elsewhere.test/x><img></picture>",
    "<svg><image href=http://elsewhere.test/x /></svg>",
    "<table background=http://elsewhere.test/x><tr><td>x</table>",
    "<p style='background:url(http://elsewhere.test/x)'>x</p>",
)
BROKEN = (
    "<script>fired()</script>",
    "<a href='javascript:fired()'><b>read</b></a>",
    "<script src=data:text/javascript,fired()></script>",
    "<scr<script>ipt>fired()</scr</script>ipt>",
    "<svg><script>fired()</script></svg>",
    "<svg><style><img src=x onerror=fired()></style></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=fired()></style></mglyph></table></mtext></math>",
    "<noscript><p title='</noscript><img src=x onerror=fired()>'></noscript>",
    "<template><img src=x onerror=fired()></template>",
    "<!--><img src=x onerror=fired()>-->",
    "<![CDATA[<img src=x onerror=fired()>]]>",
    "</code></pre><img src=x onerror=fired()>",
    "`</code><img src=x onerror=fired()>`",
    "```\n</code></pre><img src=x onerror=fired()>\n```",
    '```"onmouseover="fired()\nx\n```',
    "| a |\n|---|\n| <img src=x onerror=fired()> |",
    "> <img src=x onerror=fired()>",
    "# <img src=x onerror=fired()>",
    "- <img src=x onerror=fired()>",
    '[read](x "onmouseover=fired()")',
    "[read](x '\"><img src=x onerror=fired()>')",
    "[<img src=x onerror=fired()>](x)",
    "![<img src=x onerror=fired()>](x)",
    "\\<img src=x onerror=fired()>",
    "&lt;img src=x onerror=fired()&gt;",
    "<div><div><div>" * 200 + "<img src=x onerror=fired()>",
)


def readmes() -> list[str]:
    """The corpus, in a fixed order."""
    handled = [f"<{element} {handler}=fired()>x" for element, handler in product(ELEMENTS, HANDLERS)]
    linked = [link.format(scheme) for link, scheme in product(LINKS, SCHEMES)]
    return [*handled, *linked, *FOREIGN, *BROKEN][:200]

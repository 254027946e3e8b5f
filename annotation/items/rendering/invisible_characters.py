"""Renders texts as safe HTML in which each invisible character shows a short name.

A text may contain characters that change its direction, join or separate letters, or contain a
message that no reader can see. Each is put in `<span class="sign" data-sign="RLO">`: the style
sheet draws the name, and the character itself stays in the text, so that copying gives the
original. A joiner within an emoji or between letters of a script that needs it is normal writing
and is not marked.

Raw texts show white space in the same way: `<i data-blank="·"> </i>`.
"""

import html
import re
import unicodedata

MOST_NAMED = 10_000
"""Characters of a text that are named. A name is an element, many times as long as its character:
a million of them would take all memory of a browser, and much of the server's."""

MOST_DRAWN = 100_000
"""Places of white space of a text that are drawn in its raw view, each by an element too."""

SIGN_NAMES = {
    "\u00ad": "SHY", "\u034f": "CGJ", "\u061c": "ALM", "\u180e": "MVS", "\u200b": "ZWSP",
    "\u200c": "ZWNJ", "\u200d": "ZWJ", "\u200e": "LRM", "\u200f": "RLM", "\u2028": "LS",
    "\u2029": "PS", "\u202a": "LRE", "\u202b": "RLE", "\u202c": "PDF", "\u202d": "LRO",
    "\u202e": "RLO", "\u2060": "WJ", "\u2066": "LRI", "\u2067": "RLI", "\u2068": "FSI",
    "\u2069": "PDI", "\ufeff": "BOM",
}  # fmt: skip

_INVISIBLE = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef"
)
_FLAG = "\U0001f3f4[\U000e0020-\U000e007f]+"  # flags of regions are spelt with tag characters
_SIGN = re.compile(f"{_FLAG}|[{_INVISIBLE}]")
_SPECIAL = re.compile(f"[&<>\"'\r{_INVISIBLE}]")
_SIGN_OR_ODD_SPACE = re.compile(rf"{_FLAG}|\r\n|[{_INVISIBLE}]|(?!(?<=\S) (?=\S))[^\S\n\r]+|[\n\r]")
_SIGN_OR_SPACE = re.compile(rf"{_FLAG}|\r\n|[{_INVISIBLE}]|[^\S\n\r]+|[\n\r]")
_BLANKS = {" ": "·", "\t": "→", "\n": "↵", "\r": "␍"}
_JOINERS = "\u200c\u200d"
# Devanagari to Myanmar, Khmer and Mongolian to Vedic signs, and the later extensions of these.
_INDIC = (("\u0900", "\u109f"), ("\u1780", "\u1cff"), ("\ua800", "\uabff"))


class SignNamer:
    """Names the invisible characters in the pieces of one text, up to `MOST_NAMED` of them, and
    draws its white space, up to `MOST_DRAWN` places."""

    def __init__(self) -> None:
        self.left = MOST_NAMED
        self.blanks_left = MOST_DRAWN

    def escape(self, text: str) -> str:
        """Return safe HTML of a piece of the text, with its invisible characters named."""
        if not _SPECIAL.search(text):  # true for most words; a long difference has thousands
            return text
        # A browser would read CR LF as one character, and all places behind it would be off by one.
        return _SIGN.sub(self._name, html.escape(text)).replace("\r\n", "&#13;\n")

    def name_in_html(self, markup: str) -> str:
        """Name the invisible characters in the text of this HTML, but not in its attributes."""
        if not _SIGN.search(markup):
            return markup
        pieces = re.split(r"(<(?:[^<>\"]|\"[^\"]*\")*>)", markup)
        pieces[::2] = [_SIGN.sub(self._name, piece) for piece in pieces[::2]]
        return "".join(pieces)

    def render_raw(
        self, text: str, *, sparing: bool = False, before: str = "", after: str = ""
    ) -> str:
        """Return safe HTML of a piece of the text, with its invisible characters named and its
        white space visible.

        With `sparing`, single spaces between words stay plain, because each visible sign is an
        element. The characters `before` and `after` the piece show whether a space at its ends is
        single.
        """
        left, right = ("x" if sign.strip() else "" for sign in (before, after))
        found = _SIGN_OR_ODD_SPACE if sparing else _SIGN_OR_SPACE
        drawn = found.sub(self._name_or_draw, left + html.escape(text) + right)
        return drawn.removeprefix(left).removesuffix(right)

    def _name_or_draw(self, match: re.Match[str]) -> str:
        if not match[0].isspace() or _SIGN.match(match[0]):
            return self._name(match)
        if not self.blanks_left:
            return match[0]
        self.blanks_left -= 1
        return f'<i data-blank="{draw_blanks(match[0])}">{match[0]}</i>'

    def _name(self, match: re.Match[str]) -> str:
        named = _name_sign(match)
        if named == match[0] or not self.left:
            return match[0]
        self.left -= 1
        return named


def escape_text(text: str) -> str:
    """Return safe HTML of a whole text, with its invisible characters named."""
    return SignNamer().escape(text)


def render_raw(text: str, *, sparing: bool = False) -> str:
    """Return safe HTML of a whole text, as `SignNamer.render_raw` does."""
    return SignNamer().render_raw(text, sparing=sparing)


def name_in_html(markup: str) -> str:
    """Name the invisible characters in the text of this HTML, but not in its attributes."""
    return SignNamer().name_in_html(markup)


def find_unseen(text: str) -> str:
    """Return the name of the first character that nobody sees in a text of one line, such as one
    that turns the words behind it round; "" if there is none. Joiners in normal writing are
    none."""
    for match in re.finditer(f"{_SIGN.pattern}|[\t\n\r]", text):
        sign = match[0]
        if len(sign) == 1 and not (sign in _JOINERS and _is_writing(match)):
            return SIGN_NAMES.get(sign) or f"U+{ord(sign):04X}"
    return ""


def draw_blanks(text: str) -> str:
    """Return the visible signs for white space, one sign for each character; CR LF counts as one
    character."""
    return "".join(_BLANKS.get(sign, "⍽") for sign in text.replace("\r\n", "\n"))


def _name_sign(match: re.Match[str]) -> str:
    sign = match[0]
    if len(sign) > 1 or (sign in _JOINERS and _is_writing(match)):
        return sign
    name = SIGN_NAMES.get(sign) or f"U+{ord(sign):04X}"
    return f'<span class="sign" data-sign="{name}">{sign}</span>'


def _is_writing(joiner: re.Match[str]) -> bool:
    """True if the joiner is between letters or emoji that are normally written with joiners."""
    text, start, end = joiner.string, joiner.start(), joiner.end()
    return start > 0 and end < len(text) and _joins(text[start - 1]) and _joins(text[end])


def _joins(sign: str) -> bool:
    category = unicodedata.category(sign)
    if category in {"So", "Sk", "Mn", "Mc", "Me"}:
        return True
    right_to_left = category[0] == "L" and unicodedata.bidirectional(sign) in {"AL", "R"}
    return right_to_left or any(first <= sign <= last for first, last in _INDIC)

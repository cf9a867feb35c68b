"""The markup of Markdown: what is cut from the text, and the links.

Only code, lists, tables and emphasis stay as written. Template tags are those of Jekyll, Liquid,
Jinja and Vue; attribute lists those of kramdown; containers those of MyST and VitePress.
"""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, unquote

from callslip.ingestion.extract.cuts import Cut, Spans
from callslip.ingestion.values import Block, Link

_INLINE_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)[^\n]{1,500}?(?<!`)\1(?!`)")

_TAG = re.compile(r"\{%-?\s{0,9}[\w-]+(?P<arguments>[^%]{0,1000})-?%\}|\{\{[^{}\n]{0,300}\}\}")
_QUOTED = re.compile(r"[\"']([^\"'/.]{1,80})[\"']")

_HIDDEN = re.compile(r"<!--|<(script|style)\b[^<>]{0,500}>", re.I)
"""The start of a comment, or of an element whose content nobody reads."""

_HTML = re.compile(
    r"</?(?i:a|abbr|article|aside|b|big|blockquote|br|caption|center|cite|code|col|colgroup|dd|del"
    r"|details|dfn|div|dl|dt|em|figcaption|figure|font|footer|h[1-6]|header|hr|button|form|i|iframe|img|input|label"
    r"|ins|kbd|li|main|mark|nav|ol|p|picture|pre|q|s|samp|section|select|small|source|span|strong|sub"
    r"|summary|sup|svg|path|table|tbody|td|tfoot|th|thead|time|tr|tt|u|ul|var|video)"
    r"(?:\s[^<>]{0,500})?/?>"
    r"|<[A-Z]\w{1,40}(?:\s[^<>]{0,500})?/>|</?[A-Z]\w{1,40}\s[\w:@-]{1,40}=[^<>]{0,500}>"
    r"|</[A-Z]\w{1,40}>"
)

_BRACKETS = r"(?>[^\[\]\\\n]|\\.|\n(?!\s*\n)|\[(?:[^\[\]\\\n]|\\.)*\](?:\([^()\s]{0,500}\))?)"
_TITLE = r"(?:\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'|\([^()\n]{0,500}\))"
_TARGET = (
    r"(?:<[^<>\n]{0,2000}>"
    r"|(?>\{%[^%\n]{0,300}%\}|\{\{[^{}\n]{0,300}\}\}|\([^\s()]{0,500}\)|[^\s()]){0,200000})"
)
_LINK = re.compile(
    rf"(?<!\\)(?P<image>!?)\[(?P<words>{_BRACKETS}{{0,1000}}?)\]"
    rf"(?:\([ \t]*(?P<target>{_TARGET})(?:\s{{1,9}}{_TITLE})?[ \t]*\)"
    r"|\[(?P<label>[^\[\]\n]{0,200})\])"
)
_DEFINITION = re.compile(
    rf"^ {{0,3}}\[(?P<label>[^\[\]\n^]{{1,200}})\]:[ \t]*(?P<target><[^<>\n]{{0,2000}}>|\S+)"
    rf"(?:[ \t]{{1,99}}{_TITLE})?[ \t]*$",
    re.M,
)
_ADDRESS_OF_LINK = re.compile(r"\A<|[/.#:{]|\A[!-~]*\Z")
"""What a target is like: `[별표 1](제5조)` is no link."""

_AUTOLINK = re.compile(r"<(?=(?:https?|mailto|ftp):[^\s<>]{1,2000}>)(?P<target>[^\s<>]+)>")
_ADDRESS = re.compile(r"https?://[^\s<>()\[\]\"'`|]{1,2000}")
_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_BADGE = re.compile(r"shields\.io|badge|travis-ci|codecov|circleci|/actions/workflows/", re.I)

_ATTRIBUTES = re.compile(
    r"(?<![ \t])[ \t]*\{:?[ \t]{0,9}[#.][A-Za-z_][^{}\n]{0,200}\}|^\{:[^{}\n]{0,200}\}[ \t]*$", re.M
)
_CONTAINER = re.compile(r"^[ \t]*:{3,}[ \t]*(?:\{[A-Za-z-]+\}|[A-Za-z-]+)?", re.M)
_CONTENTS = re.compile(r"^[ \t]*(?:\[\[_?toc_?\]\]|\[toc\])[ \t]*$", re.M | re.I)
_NAVIGATION = re.compile(
    r"(?:^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\[[^\[\]\n]{1,300}\]"
    r"\(#[^()\n]{0,300}\)[ \t]*(?:\n|\Z)){3,}",
    re.M,
)
"""A list of links to parts of the same page."""


def cuts_and_links(text: str, blocks: Iterable[Block], body: int) -> tuple[list[Cut], list[Link]]:
    """Return what to cut from the text after offset `body`, and the links with their words.

    Nothing of a code block or of code in a line is cut.
    """
    code = _code(text, blocks, body)
    labels = {_label(m["label"]): m["target"].strip("<>") for m in _DEFINITION.finditer(text, body)}
    cuts = list(_hidden(text, body))
    links: list[Link] = []
    patterns = (_HTML, _DEFINITION, _ATTRIBUTES, _CONTAINER, _CONTENTS, _NAVIGATION)
    for pattern in patterns:
        cuts += (Cut(*m.span()) for m in pattern.finditer(text, body))
    cuts += (Cut(*m.span(), _argument(m)) for m in _TAG.finditer(text, body))
    for each, link in _links(text, body, len(text), labels):
        cuts += each
        links += link
    for autolink in _AUTOLINK.finditer(text, body):
        start, end = autolink.span("target")
        cuts += (Cut(start - 1, start), Cut(end, end + 1))
        links.append(Link(start, end, autolink["target"]))
    for address in _ADDRESS.finditer(text, body):
        for encoded in _ENCODED.finditer(text, *address.span()):
            cuts.append(Cut(*encoded.span(), _decoded(encoded[0])))
    return [each for each in cuts if not code.cross(each)], links


def _code(text: str, blocks: Iterable[Block], body: int) -> Spans:
    """The spans of code after offset `body`: blocks, and code in a line."""
    whole = Spans((block.start, block.end) for block in blocks if block.kind == "code")
    inline = (m.span() for m in _INLINE_CODE.finditer(text, body) if not whole.has(m.start()))
    return Spans(sorted([*whole.all, *inline]))


def _hidden(text: str, at: int) -> Iterator[Cut]:
    """Yield comments, scripts and style sheets; one without an end is text."""
    ends: dict[str, int] = {}
    while match := _HIDDEN.search(text, at):
        end = f"</{match[1].lower()}" if match[1] else "-->"
        at = match.end()
        if 0 <= ends.get(end, 0) < at:
            following = re.compile(rf"{end}\s*>?", re.I).search(text, at)
            ends[end] = following.end() if following else -1
        if ends[end] > 0:
            at = ends[end]
            yield Cut(match.start(), at)


def _links(
    text: str, start: int, end: int, labels: dict[str, str]
) -> Iterator[tuple[list[Cut], list[Link]]]:
    """Yield the cuts of each link or image, and the link; a link's words may have an image."""
    for match in _LINK.finditer(text, start, end):
        target = match["target"]
        if target is None:
            target = labels.get(_label(match["label"] or match["words"]))
            if target is None:
                continue
        elif not (_ADDRESS_OF_LINK.search(target) or match["image"]):
            continue
        if _BADGE.search(match[0]) and (match["image"] or "![" in match["words"]):
            yield [Cut(*match.span())], []
            continue
        words, after = match.span("words")
        cuts = [Cut(match.start(), words), Cut(after, match.end())]
        address = target.split(maxsplit=1)[0].strip("<>") if target.strip() else ""
        yield cuts, [Link(words, after, address)] if address and words < after else []
        if "[" in match["words"]:
            yield from _links(text, words, after, labels)


def _label(words: str) -> str:
    return " ".join(words.casefold().split())


def _argument(tag: re.Match[str]) -> str:
    """The words that a tag shows: its last quoted argument, unless that is a path."""
    quoted = _QUOTED.findall(tag["arguments"] or "")
    return str(quoted[-1]) if quoted else ""


def _decoded(encoded: str) -> str:
    """The letters of a percent-encoded part of an address, if it is printable UTF-8."""
    try:
        decoded = unquote(encoded, errors="strict")
    except UnicodeDecodeError:
        return encoded
    if decoded.isascii() or not decoded.isprintable():
        return encoded
    return "".join(quote(each) if each.isspace() else each for each in decoded)

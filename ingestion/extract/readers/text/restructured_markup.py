"""The markup of reStructuredText: what is cut from the text, and the links.

Code in blocks and lines, lists, tables and emphasis stay as written. Where a substitution is used,
its text stands: of an image the words that stand for it, of a date nothing. The directives and
roles are those of docutils and Sphinx.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

from callslip.ingestion.extract.cuts import Cut, Spans, cut
from callslip.ingestion.extract.lines import Lines
from callslip.ingestion.extract.sniff import RST
from callslip.ingestion.values import Block, ExtractedText, Heading, Link

ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+[ \t]*$")
"""A line of equal signs below or above a title."""

_WITHOUT_TEXT = {
    *("contents", "toctree", "index", "currentmodule", "module", "py:module", "highlight"),
    *("py:currentmodule", "image", "raw", "include", "meta", "role", "default-role", "sectnum"),
    *("tabularcolumns", "automodule", "testsetup"),
}
"""Directives whose lines and contents are no text."""

_VERSIONS = {
    "versionadded": "New in version ",
    "versionchanged": "Changed in version ",
    "deprecated": "Deprecated since version ",
}

_DIRECTIVE = re.compile(
    r"[ \t]*\.\.[ \t]+(?:\|(?P<substitution>[^|\n]+)\|[ \t]+)?(?P<name>[\w:+.-]*\w)::[ \t]*"
)
_TARGET = re.compile(r"[ \t]*(?:\.\.[ \t]+_|__[ \t])")
_FOOTNOTE = re.compile(r"[ \t]*\.\.[ \t]+(?=\[)")
_COMMENT = re.compile(r"[ \t]*\.\.(?:[ \t]|$)")
_OPTION = re.compile(r"[ \t]+:[\w-]+:")

_ROLE = re.compile(
    r":(?P<name>[A-Za-z][\w:+.-]{0,40}):`(?P<words>[^`\n]{1,300}(?:\n[^`\n]{1,300}){0,2})`"
)
_LINK = re.compile(
    r"(?<![`:\w])`(?P<words>[^`<\n]{1,300}?(?:\n[^`<\n]{1,300}?){0,2}?)"
    r"(?:\s*<(?P<target>[^<>`\s]{1,1000})>)?`__?(?!\w)"
)
_TITLED = re.compile(r"(?P<words>[^<]+?)\s*<(?P<target>[^<>]+)>\Z")
_ESCAPE = re.compile(r"\\(?:[ \n]|(?P<sign>\S))")
_VERBATIM = frozenset(("math", "file", "regexp", "code", "kbd", "samp", "command"))
"""Roles whose words have no escapes."""

_CODE_POINT = re.compile(
    r"(?:(?:0x|\\?x|\\?u|U\+|&\#x)(?P<hex>[0-9a-f]{1,8});?)|[0-9]{1,8}", re.I | re.A
)
_NOT_CODES = re.compile(r"(?:^| )(?:\.\. |:[lr]?trim:)")
"""Begins what is no code of `unicode::`: a comment or an option."""

_ALT = re.compile(r":alt: (.*?)(?= :[\w-]+:|$)")

_LITERAL = re.compile(r"``.{1,300}?``")
_SUBSTITUTION = re.compile(r"(?<![\w\\])\|(?P<name>[^\s|](?:[^|\n]{0,98}[^\s|])?)\|_{0,2}(?!\w)")


def cuts_and_links(
    lines: Lines, headings: Iterable[Heading], blocks: Iterable[Block], *, substitute: bool = True
) -> tuple[list[Cut], list[Link]]:
    """Return what to cut, and the links with their words; nothing of a code block is cut.

    With `substitute`, the text of a substitution stands where its name is used.
    """
    blocks = list(blocks)
    code = {
        at
        for block in blocks
        if block.kind == "code"
        for at in lines.between(block.start, block.end)
    }
    inside = code.union(*(lines.between(b.start, b.end) for b in blocks if b.kind == "table"))
    text, links = lines.text, list[Link]()
    cuts = [*_adornments(lines, headings), *_directives(lines, inside)]
    literal = Spans(m.span() for m in _LITERAL.finditer(text))
    roles = list(_ROLE.finditer(text))
    verbatim = Spans(m.span() for m in roles if m["name"] in _VERBATIM)
    for match in (*roles, *_LINK.finditer(text)):
        start, end = match.span("words")
        if lines.at(start) in code or literal.has(start):
            continue
        target = match.groupdict().get("target") or ""
        if match.re is _ROLE:
            start, end, target = _of_role(match)
        if lines.at(start) in inside and "\n" in match[0]:  # in a cell: its lines stay lines
            end, target = end + text[end : match.end()].rfind("\n") + 1, ""
        cuts += (Cut(match.start(), start), Cut(end, match.end()))
        if target:
            links.append(Link(start, end, target))

    def stays(at: int) -> bool:
        return lines.at(at) in code or literal.has(at) or verbatim.has(at)

    for escape in _ESCAPE.finditer(text):
        at = escape.start()
        if not stays(at) and not (escape[0] == "\\\n" and lines.at(at) in inside):
            cuts.append(Cut(*escape.span(), escape["sign"] or ""))
    substitutions = dict(_substitutions(lines, inside)) if substitute else {}
    used = (s for s in _SUBSTITUTION.finditer(text) if not stays(s.start()))
    cuts += _substituted(used, substitutions, len(text))
    return cuts, links


def _substitutions(lines: Lines, inside: set[int]) -> Iterator[tuple[str, str]]:
    """Yield each substitution, and the text that stands for it: `.. |name| replace:: text`."""
    after = 0
    for at, line in enumerate(lines.all):
        directive = None if at < after or at in inside else _DIRECTIVE.match(line)
        if directive and directive["substitution"] and directive["name"] in _TEXTS:
            after = lines.after_indented(at)
            source = " ".join((line[directive.end() :], *lines.all[at + 1 : after]))
            text = _TEXTS[directive["name"]](" ".join(source.split()))
            yield _name(directive["substitution"]), text


def _replaced(source: str) -> str:
    """Return the text of `replace::` without its markup."""
    cuts, _ = cuts_and_links(Lines(source), (), (), substitute=False)
    return cut(ExtractedText(source, RST), cuts).text


def _characters(source: str) -> str:
    """Return the characters of `unicode::`: codes and text, whose blanks do not count."""
    codes = _NOT_CODES.split(source, maxsplit=1)[0].split()
    return "".join(map(_character, codes))


def _character(code: str) -> str:
    number = _CODE_POINT.fullmatch(code)
    if number is None:
        return code
    at = int(number["hex"], 16) if number["hex"] else int(code)
    return chr(at) if at <= sys.maxunicode and not 0xD800 <= at <= 0xDFFF else ""


def _alternative(source: str) -> str:
    """Return the words that stand for an image."""
    words = _ALT.search(source)
    return words[1] if words else ""


_TEXTS: Mapping[str, Callable[[str], str]] = {
    "replace": _replaced,
    "unicode": _characters,
    "image": _alternative,
    "date": lambda _: "",  # the text does not depend on the day
}
"""The text of each kind of substitution, by its lines on one line."""


def _substituted(
    used: Iterable[re.Match[str]], substitutions: dict[str, str], most: int
) -> Iterator[Cut]:
    """Yield the text of each substitution where it is used, at most `most` characters of text.

    Within a substitution's text the names of others stay.
    """
    for match in used:
        text = substitutions.get(_name(match["name"]))
        if text is not None and len(text) <= most:
            most -= len(text)
            yield Cut(*match.span(), text)


def _name(written: str) -> str:
    """The name of a substitution; docutils compares names without case where none is equal."""
    return " ".join(written.casefold().split())


def _of_role(role: re.Match[str]) -> tuple[int, int, str]:
    """The span of a role's words, and its target: `text <target>`, `~package.Name`, `name`."""
    words, start, end = role["words"], *role.span("words")
    if role["name"] in _VERBATIM:
        return start, end, ""
    if titled := _TITLED.match(words):
        return start, start + titled.end("words"), titled["target"]
    target = words.lstrip("~!")
    if words.startswith("~"):
        return end - len(target.rsplit(".", 1)[-1]), end, target
    return start + len(words) - len(target), end, target


def _adornments(lines: Lines, headings: Iterable[Heading]) -> Iterator[Cut]:
    """Cut the lines of signs below and above titles."""
    for heading in headings:
        at = lines.at(heading.start)
        for beside in (at - 1, at + 1):
            if 0 <= beside < len(lines) and ADORNMENT.match(lines.all[beside].strip()):
                yield lines.cut(beside, beside + 1, instead="\n" if beside > at else "")


def _directives(lines: Lines, inside: set[int]) -> Iterator[Cut]:
    """Cut the marks of directives, targets and comments, and what of them is no text."""
    at = 0
    while at < len(lines):
        line, after = lines.all[at], at + 1
        if at in inside:
            pass
        elif directive := _DIRECTIVE.match(line):
            options = after
            while options < len(lines) and _OPTION.match(lines.all[options]):
                options += 1
            if directive["name"] in _WITHOUT_TEXT or "|" in directive[0]:
                after = lines.after_indented(at)
                yield lines.cut(at, after)
            elif lines.after_blank(options) in inside:  # code, whose argument is its language
                yield lines.cut(at, options)
            else:
                start = lines.starts[at]
                shown = _VERSIONS.get(directive["name"], "")
                yield Cut(start, start + directive.end(), shown)
                if options > after:
                    yield lines.cut(after, options)
        elif footnote := _FOOTNOTE.match(line):
            yield Cut(lines.starts[at], lines.starts[at] + footnote.end())
        elif _TARGET.match(line):
            yield lines.cut(at, after)
        elif _COMMENT.match(line):
            alone = line.strip() == ".." and lines.blank(after)
            after = after if alone else lines.after_indented(at)
            yield lines.cut(at, after)
        elif (before := line.rstrip()).endswith("::"):
            before = before[:-2].rstrip()
            goes_on = before[-1:] not in ("", ".", "!", "?", ":")
            start = lines.starts[at] + len(before)
            yield Cut(start, lines.end(at), ":" if goes_on else "")
        at = after

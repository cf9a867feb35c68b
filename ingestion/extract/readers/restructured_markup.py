"""The markup of reStructuredText that is no text: what is cut, and the links.

Code in blocks and lines, lists, tables and emphasis stay as written. The directives and roles are
those of docutils and Sphinx.
"""

import re
from collections.abc import Iterable, Iterator

from callslip.ingestion.extract.cuts import Cut, Spans
from callslip.ingestion.extract.lines import Lines
from callslip.ingestion.values import Block, Heading, Link

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

_DIRECTIVE = re.compile(r"[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?(?P<name>[\w:+.-]*\w)::[ \t]*")
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

_LITERAL = re.compile(r"``.{1,300}?``")


def cuts_and_links(
    lines: Lines, headings: Iterable[Heading], blocks: Iterable[Block]
) -> tuple[list[Cut], list[Link]]:
    """Return what to cut, and the links with their words; nothing of a code block is cut."""
    inside = {at for block in blocks for at in lines.between(block.start, block.end)}
    cuts = [*_adornments(lines, headings), *_directives(lines, inside)]
    text, links = lines.text, list[Link]()
    literal = Spans(m.span() for m in _LITERAL.finditer(text))
    roles = list(_ROLE.finditer(text))
    verbatim = Spans(m.span() for m in roles if m["name"] in _VERBATIM)
    for match in (*roles, *_LINK.finditer(text)):
        start, end = match.span("words")
        if lines.at(start) in inside or literal.has(start):
            continue
        target = match.groupdict().get("target") or ""
        if match.re is _ROLE:
            start, end, target = _of_role(match)
        cuts += (Cut(match.start(), start), Cut(end, match.end()))
        if target:
            links.append(Link(start, end, target))
    for escape in _ESCAPE.finditer(text):
        at = escape.start()
        if lines.at(at) not in inside and not literal.has(at) and not verbatim.has(at):
            cuts.append(Cut(*escape.span(), escape["sign"] or ""))
    return cuts, links


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

"""Markdown: its text without link syntax and templates, its headings, its front matter."""

import datetime
import re
from dataclasses import replace

import yaml
from markdown_it import MarkdownIt

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.clean import clean
from callslip.ingestion.extract.cuts import Cut, cut
from callslip.ingestion.extract.decode import decode
from callslip.ingestion.extract.readers.text.markdown_markup import cuts_and_links
from callslip.ingestion.extract.readers.text.slugs import with_slugs
from callslip.ingestion.left_out import read_otherwise
from callslip.ingestion.values import Block, ExtractedText, Heading

MAX_FRONT_MATTER = 8_192
"""The maximum number of characters between two `---` that are front matter. libyaml crashes on much
deeper nesting than fits into this length."""

_FRONT_MATTER = re.compile(
    rf"---[ \t]*\n(.{{0,{MAX_FRONT_MATTER}}}?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S
)
_SCALARS = (str, int, float, bool, datetime.date)

_BLOCKS = MarkdownIt("commonmark").enable("table")
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])  # headings need no inline parsing
_OWN_ID = re.compile(r"\{:?[ \t]{0,9}#([\w.:-]{1,200})[^{}]{0,200}\}\s*\Z")
"""The id that an attribute list gives a heading, as in kramdown and Pandoc."""
_HEAD_LINES = 2  # of a table: the column names and the line of dashes


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Return the text with the headings, code and tables of CommonMark and GFM.

    Lists, tables, code and emphasis stay as written; `markdown_markup` says what is cut.
    """
    decoded = decode(data)
    text = clean(decoded.text)
    properties: dict[str, str] = {}
    warnings = decoded.warnings
    body = front_matter = 0
    if match := _FRONT_MATTER.match(text):
        try:
            loaded = yaml.load(match[1], Loader=yaml.CSafeLoader)
        except (yaml.YAMLError, ValueError, RecursionError):
            body = match.end()
            warnings += (read_otherwise("as text", {"front matter that is not valid YAML": 1}),)
        else:
            if isinstance(loaded, dict):  # else these are two lines between paragraphs
                properties = _properties(loaded)
                body = front_matter = match.end()
    headings, blocks = _marked(text, body)
    cuts, links = cuts_and_links(text, blocks, body)
    cuts.append(Cut(0, front_matter))
    source = ExtractedText(
        text,
        "text/markdown",
        headings=headings,
        blocks=blocks,
        links=tuple(links),
        properties=properties,
        warnings=warnings,
    )
    cleaned = with_slugs(cut(source, cuts))
    first = next((cleaned.text[h.start : h.end] for h in cleaned.headings if h.level == 1), None)
    title = properties.get("title") or first
    if title and not cleaned.text.strip():  # a page of front matter alone, which people look for
        cleaned = replace(cleaned, text=title, headings=(), blocks=(), links=())
    return replace(cleaned, title=title)


def _properties(loaded: dict[object, object]) -> dict[str, str]:
    """Return the scalars and the lists of scalars as properties; leave out nested values."""
    fields = {}
    for key, value in loaded.items():
        values = value if isinstance(value, list) else [value]
        if isinstance(key, str) and values and all(isinstance(v, _SCALARS) for v in values):
            fields[key] = ", ".join(str(v) for v in values)
    return fields


def _marked(text: str, body: int) -> tuple[tuple[Heading, ...], tuple[Block, ...]]:
    """Return the headings and the blocks from offset `body`, the end of the front matter."""
    source = text[body:]
    starts = [body]
    starts.extend(m.end() + body for m in re.finditer("\n", source))
    starts.append(len(text) + 1)
    headings: list[Heading] = []
    blocks: list[Block] = []
    for token in _BLOCKS.parse(source):
        if token.map is None:
            continue
        first, after = token.map
        if token.type == "heading_open" and not token.level:
            if token.markup[0] == "#":
                inner = _without_signs(text[starts[first] : starts[after] - 1])
            else:  # setext: the last line is the underline
                inner = text[starts[first] : starts[after - 1]].strip()
            if inner:
                at = text.index(inner, starts[first])
                named = _OWN_ID.search(inner)
                anchor = named[1] if named else ""
                headings.append(Heading(at, at + len(inner), int(token.tag[1]), anchor))
        elif token.type in ("fence", "code_block", "table_open"):
            end = starts[first] + len(text[starts[first] : starts[after] - 1].rstrip())
            table = token.type == "table_open"
            header = min(starts[first + _HEAD_LINES], end) if table else starts[first]
            blocks.append(Block(starts[first], end, "table" if table else "code", header))
    return tuple(headings), tuple(blocks)


def _without_signs(line: str) -> str:
    """Return `Title` for `## Title ##`; a `#` that belongs to a word stays."""
    inner = line.strip().lstrip("#").strip()
    closed = inner.rstrip("#")
    return closed.rstrip() if not closed or closed[-1] in " \t" else inner

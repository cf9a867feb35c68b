"""HTML: the text as a reader sees it, and the headings h1 to h6."""

import re
from html.parser import HTMLParser

from inscriptis import Inscriptis
from inscriptis.css_profiles import CSS_PROFILES
from inscriptis.model.config import ParserConfig
from lxml import etree, html

from config.settings import ExtractSettings
from ingestion.extract.decode import decode
from ingestion.parts import ExtractedText, Heading

_LEVELS = {f"h{level}": level for level in range(1, 7)}
_LAYOUT = ParserConfig(css=CSS_PROFILES["strict"], annotation_rules={tag: [tag] for tag in _LEVELS})
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I)
_XML_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f]+")  # libxml2 ends the document at a NUL
_UNSEEN = ("script", "style", "title")
_TOO_DEEP = "nested too deeply: layout and headings are lost"


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Decode by mark, UTF-8, `<meta charset>`, then detection; lay the text out."""
    declared = _CHARSET.search(data[:4096])
    decoded = decode(data, declared[1].decode("ascii") if declared else None)
    page = render(decoded.text)
    return ExtractedText(
        page.text, "text/html", page.title, page.headings, warnings=decoded.warnings + page.warnings
    )


def render(source: str) -> ExtractedText:
    """Lay out HTML given as characters, for pages and for HTML mail."""
    source = _CONTROL.sub("", _XML_DECLARATION.sub("", source, count=1))
    if not source.strip():
        return ExtractedText("", "text/html")
    parser = html.HTMLParser(huge_tree=True)  # else all that is nested deeper than 255 is dropped
    tree = html.document_fromstring(source, parser=parser, ensure_head_body=True)
    title = tree.findtext(".//title")
    try:
        if parser.error_log.filter_types(etree.ErrorTypes.ERR_RESOURCE_LIMIT):
            raise RecursionError  # deeper than 2,048: dropped still
        engine = Inscriptis(tree, _LAYOUT)
        text = engine.get_text()
    except RecursionError:
        bare = _Bare()
        bare.feed(source)
        bare.close()
        return ExtractedText("\n".join(bare.lines), "text/html", title, warnings=(_TOO_DEEP,))
    headings = _headings(text, [(a.start, a.end, a.metadata) for a in engine.get_annotations()])
    if not (title and title.strip()) and headings:
        title = text[headings[0].start : headings[0].end]
    return ExtractedText(text, "text/html", title, headings)


class _Bare(HTMLParser):
    """The text without layout, for what is nested too deeply for a tree."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in _UNSEEN

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN and self._unseen > 0

    def handle_data(self, data: str) -> None:
        if not self._unseen and data.strip():
            self.lines.append(data.strip())


def _headings(text: str, labels: list[tuple[int, int, str]]) -> tuple[Heading, ...]:
    """The labelled spans without outer blanks; one that shares its line (a table cell) is none."""
    found: list[Heading] = []
    for start, end, tag in sorted(labels):
        inner = text[start:end]
        start += len(inner) - len(inner.lstrip())
        end = start + len(inner.strip())
        alone = (
            not text[text.rfind("\n", 0, start) + 1 : start].strip()
            and not text[end : _line_end(text, end)].strip()
        )
        if start < end and alone and (not found or found[-1].end <= start):
            found.append(Heading(start, end, _LEVELS[tag]))
    return tuple(found)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end

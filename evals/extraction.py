"""How long reading a file takes beside the format's own library alone."""

import email
import email.policy
import io
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import docx
import inscriptis
import pypdfium2
from markdown_it import MarkdownIt

from callslip.errors import CallslipError
from config.settings import ExtractSettings
from ingestion.extract.sniff import DOCX, EMAIL, HTML, MARKDOWN, PDF, PLAIN
from ingestion.isolation import Extractor

ROUNDS = 3
"""The best of these counts: what else the machine does only ever adds to a time."""


@dataclass
class Ratio:
    """Seconds for all files of one media type: Callslip with its child process, the library."""

    media_type: str
    files: int = 0
    megabytes: float = 0.0
    ours: float = 0.0
    alone: float = 0.0


def measure(paths: Sequence[Path]) -> list[Ratio]:
    """Time both in turns, file by file; those that Callslip refuses or has no library for not."""
    found: dict[str, Ratio] = {}
    with Extractor(ExtractSettings()) as extractor:
        for path in paths:
            data = path.read_bytes()
            with suppress(CallslipError):
                media_type = extractor.extract(data, path.name).media_type
                if media_type not in _ALONE:
                    continue
                read, ours, alone = partial(_ours, extractor, path.name), [], []
                for _ in range(ROUNDS):
                    ours.append(_seconds(read, data))
                    alone.append(_seconds(_ALONE[media_type], data))
                ratio = found.setdefault(media_type, Ratio(media_type))
                ratio.files += 1
                ratio.megabytes += len(data) / 1e6
                ratio.ours += min(ours)
                ratio.alone += min(alone)
    return sorted(found.values(), key=lambda ratio: -ratio.alone)


def _seconds(read: Callable[[bytes], object], data: bytes) -> float:
    started = time.perf_counter()
    with suppress(Exception):  # a library that gives up where Callslip reads on
        read(data)
    return time.perf_counter() - started


def _ours(extractor: Extractor, name: str, data: bytes) -> int:
    return len(extractor.extract(data, name).text)


def _pdf(data: bytes) -> int:
    document = pypdfium2.PdfDocument(data)
    try:
        return sum(len(page.get_textpage().get_text_bounded()) for page in document)
    finally:
        document.close()


def _docx(data: bytes) -> int:
    document = docx.Document(io.BytesIO(data))
    cells = (c.text for table in document.tables for row in table.rows for c in row.cells)
    return sum(len(p.text) for p in document.paragraphs) + sum(map(len, cells))


def _html(data: bytes) -> int:
    return len(inscriptis.get_text(data.decode("utf-8", "replace")))


def _markdown(data: bytes) -> int:
    return len(MarkdownIt().parse(data.decode("utf-8", "replace")))


def _email(data: bytes) -> int:
    message = email.message_from_bytes(data, policy=email.policy.default)
    return sum(len(str(part.get_content())) for part in message.walk() if not part.is_multipart())


def _plain(data: bytes) -> int:
    return len(data.decode("utf-8", "replace"))


_ALONE: dict[str, Callable[[bytes], int]] = {
    PDF: _pdf,
    DOCX: _docx,
    HTML: _html,
    MARKDOWN: _markdown,
    EMAIL: _email,
    PLAIN: _plain,
}
"""All the text of a file and nothing else: no headings, no type, no check, no limits."""

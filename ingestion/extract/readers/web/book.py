"""EPUB: the chapters in reading order, each laid out as a web page."""

import posixpath
from urllib.parse import unquote

from lxml import etree

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile, NeedsPassword
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.container import open_package
from callslip.ingestion.extract.readers.web.page import decode_page, render
from callslip.ingestion.extract.sniff import EPUB
from callslip.ingestion.left_out import left_out
from callslip.ingestion.values import ExtractedText

_OPF = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"
_CIPHER = "{http://www.w3.org/2001/04/xmlenc#}CipherReference"
_PROPERTIES = ("creator", "publisher", "date", "language")
_PARSER = etree.XMLParser(resolve_entities=False, no_network=True)


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read the chapters that the spine lists; raises NeedsPassword if one is encrypted."""
    composer = Composer(limits)
    warnings: list[str] = []
    missing: list[str] = []
    with open_package(data, limits) as archive:
        names = set(archive.namelist())
        container = etree.fromstring(archive.read("META-INF/container.xml"), _PARSER)
        root = container.find(f".//{_CONTAINER}rootfile")
        if root is None:
            raise BrokenFile("the EPUB names no package file")
        where = root.get("full-path", "")
        package = etree.fromstring(archive.read(where), _PARSER)
        counts = {"pictures": sum(1 for item in package.iter(f"{_OPF}item") if _is_picture(item))}
        hidden: set[str] = set()
        if "META-INF/encryption.xml" in names:
            encryption = etree.fromstring(archive.read("META-INF/encryption.xml"), _PARSER)
            hidden = {unquote(c.get("URI", "")) for c in encryption.iter(_CIPHER)}
        for path in _spine(package, posixpath.dirname(where)):
            composer.page()
            if path in hidden:
                raise NeedsPassword(
                    "the book's chapters are encrypted",
                    hint="Only the seller's programs open it; upload a copy without protection.",
                )
            if path not in names:
                missing.append(posixpath.basename(path))
                continue
            decoded = decode_page(archive.read(path))
            page = render(decoded.text)
            warnings += decoded.warnings + page.warnings
            composer.put(page)
    lost = left_out(counts, {"chapters that are missing": missing})
    elements = {name: package.findtext(f".//{_DC}{name}") for name in _PROPERTIES}
    return composer.text(
        EPUB,
        package.findtext(f".//{_DC}title"),
        properties={name: value for name, value in elements.items() if value},
        warnings=(*dict.fromkeys(warnings), *lost),
    )


def _is_picture(item: etree._Element) -> bool:
    return item.get("media-type", "").startswith("image/")


def _spine(package: etree._Element, folder: str) -> list[str]:
    """Return the paths of the chapters in the archive, each once even if the spine repeats it.

    The book's navigation is no chapter.
    """
    items = {
        item.get("id"): item.get("href", "")
        for item in package.iter(f"{_OPF}item")
        if "nav" not in item.get("properties", "").split()
    }
    elements = (items.get(item.get("idref")) for item in package.iter(f"{_OPF}itemref"))
    paths = (posixpath.normpath(posixpath.join(folder, unquote(href))) for href in elements if href)
    return list(dict.fromkeys(paths))

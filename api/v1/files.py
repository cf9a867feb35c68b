"""/v1/documents/{id}/file, /pages/{n}.png and /tables/{n}.csv: a file, its pages and tables."""

import re
from contextlib import ExitStack
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from flask import Response, request
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field
from werkzeug.wsgi import wrap_file

from callslip.api.http.context import current
from callslip.api.identity.current import caller
from callslip.api.messages import documents
from callslip.api.v1.documents import MOST_VERSIONS, DocumentPath, extracted_of
from callslip.errors import DocumentNotFound, DocumentTableNotFound, PageNotFound, PermissionMissing
from callslip.ingestion.extract.sniff import BINARY_NAMES, PDF, PLAIN, TEXT_NAMES
from callslip.ingestion.pages.areas import areas_of
from callslip.ingestion.tables import as_csv
from callslip.messages.values import OptionalWhole, Whole
from callslip.stores.blobs import original_name
from callslip.stores.ledger import VersionRecord

blueprint = APIBlueprint("files", __name__, abp_tags=[Tag(name="documents")])

UNKNOWN = "application/octet-stream"

SHOWN = frozenset({PDF, PLAIN})
"""The types that a browser may show: it runs nothing of them."""

SANDBOX = "sandbox; default-src 'none'"
"""The policy of an original, which may be hostile: no script, no form, no origin."""

SHOWN_PDF = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'"
"""The policy of a PDF that a browser shows; its viewer does not start in a sandbox."""

MOST_DIGITS = 8

LARGEST_CACHED = 1_000_000
"""The maximum bytes of an image that a process caches."""

CACHE_SECONDS = 3600
"""How long a browser may keep the image of a page, which is that of one version."""


def _binary(media_type: str) -> dict[str, Any]:
    schema = {"type": "string", "format": "binary"}
    return {"description": "the bytes", "content": {media_type: {"schema": schema}}}


class OfVersion(documents.Request):
    version: OptionalWhole = Field(
        None, ge=1, le=MOST_VERSIONS, description="which version; left out: the live one"
    )


class FileQuery(OfVersion):
    show: bool = Field(
        False, description="let a browser show a PDF or plain text instead of saving the file"
    )


class PagePath(BaseModel):
    document_id: str
    number: str = Field(description="from 1")


class TablePath(BaseModel):
    document_id: str
    number: str = Field(description="from 1, in the order of the text")


class PageQuery(OfVersion):
    start: OptionalWhole = Field(None, ge=0, description="mark the lines from this character on")
    end: OptionalWhole = Field(None, ge=0, description="up to this character of the extracted text")
    width: Whole = Field(1000, ge=100, le=3000, description="of the image, in pixels")


@blueprint.get(
    "/v1/documents/<string:document_id>/file",
    responses={200: _binary("*/*"), 206: _binary("*/*")},
)
def get_file(path: DocumentPath, query: FileQuery) -> Response:
    """The original of a version, byte for byte. Ranges and `If-None-Match` are respected.

    404 if the version has no file, such as one of provided chunks.
    """
    version = _version(path.document_id, query.version)
    with ExitStack() as stack:
        try:
            reading = current().blobs.reading(version.document_id, original_name(version.sha256))
            size, file = stack.enter_context(reading)
        except FileNotFoundError:
            raise _no_file(version) from None
        media_type = PDF if b"%PDF-" in file.read(1024) else _type(version.filename)
        file.seek(0)
        shown = query.show and media_type in SHOWN
        response = Response(wrap_file(request.environ, file), content_type=media_type)
        response.content_length = size
        response.set_etag(version.sha256)
        response.make_conditional(request, accept_ranges=True, complete_length=size)
        name = PurePath(version.filename).name or "file"
        response.headers["Content-Disposition"] = _disposition(name, shown=shown)
        policy = SHOWN_PDF if shown and media_type == PDF else SANDBOX
        response.headers["Content-Security-Policy"] = policy
        response.call_on_close(stack.pop_all().close)
    return response


@blueprint.get(
    "/v1/documents/<string:document_id>/pages/<string:number>.png",
    responses={200: _binary("image/png")},
)
def get_page(path: PagePath, query: PageQuery) -> Response:
    """A page of a PDF as an image; with `start` and `end`, the lines of that text are marked.

    404 if the version is no PDF or has no such page; an error of the file if it cannot be drawn.
    """
    version = _version(path.document_id, query.version)
    number = _number(path.number)
    if number is None:
        raise PageNotFound(f"{path.number[:MOST_DIGITS]!r} is no number of a page")
    marks = (query.start, query.end) if query.start is not None and query.end else None
    etag = f"{version.sha256[:32]}-{number}-{query.width}"
    if marks is not None:  # the text to mark may differ in versions of the same bytes
        etag += f"-{version.version}-{marks[0]}-{marks[1]}"
    response = Response(content_type="image/png")
    response.set_etag(etag)
    response.headers["Cache-Control"] = f"private, max-age={CACHE_SECONDS}"
    if request.if_none_match.is_strong(etag):  # `*` would match a page that does not exist
        response.status_code = 304
        return response
    key = (version.document_id, etag)
    image = current().drawings.get(key)
    if image is None:
        areas = []
        if marks is not None:
            whole = areas_of(current().backend, version.document_id, version.version, [marks])
            areas = [area for area in whole[0] if area.page == number]
        data = _original(version)
        if b"%PDF-" not in data[:1024]:
            raise PageNotFound(f"document {version.document_id!r} is no PDF")
        image = current().drawer.draw(data, version.filename, number, areas, query.width)
        if len(image) <= LARGEST_CACHED:
            current().drawings.put(key, image)
    response.set_data(image)
    if request.if_none_match.star_tag:
        response.status_code = 304
    return response


@blueprint.get(
    "/v1/documents/<string:document_id>/tables/<string:number>.csv",
    responses={200: _binary("text/csv")},
)
def get_table(path: TablePath, query: OfVersion) -> Response:
    """A table of the extracted text as CSV (RFC 4180, UTF-8), its header rows first.

    Values are as they are in the file: a program for spreadsheets may take `=1+1` for a formula.
    """
    record = current().ledger.documents.get(path.document_id)
    number = _number(path.number)
    if number is None:
        raise DocumentTableNotFound(f"{path.number[:MOST_DIGITS]!r} is no number of a table")
    response = Response(
        as_csv(extracted_of(record, query.version), number), content_type="text/csv; charset=utf-8"
    )
    name = f"{PurePath(record.newest.filename).stem or 'file'}-table-{number}.csv"
    response.headers["Content-Disposition"] = _disposition(name, shown=False)
    return response


def _disposition(name: str, *, shown: bool) -> str:
    """The header that names a file, in ASCII: a name in other letters stands encoded beside it.

    RFC 6266 and RFC 8187. The server refuses headers beyond Latin-1.
    """
    plain = re.sub(r'[^ -~]|["\\%]', "_", name)
    header = f'{"inline" if shown else "attachment"}; filename="{plain}"'
    return header if plain == name else f"{header}; filename*=UTF-8''{quote(name, safe='')}"


def _number(text: str) -> int | None:
    """The number in a path, in decimal digits; None for any other text and for a longer one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < MOST_DIGITS else None


def _version(document_id: str, number: int | None) -> VersionRecord:
    """The version of this number, by default the live one, or else the newest.

    Raises PermissionMissing if it has personal data that its readers may not see.
    """
    record = current().ledger.documents.get(document_id)
    if record.deleted_at is not None:
        raise DocumentNotFound(f"document {document_id!r} was deleted")
    options = current().ledger.collections.get(record.collection).options
    if options.scrub == "text" and not caller().may("write"):
        raise PermissionMissing(
            "the collection masks personal data, and the original has it",
            hint="A key with the permission `write` gets originals and images of pages.",
        )
    wanted = number or record.live_version or record.newest.version
    version = current().ledger.documents.version(document_id, wanted)
    if not version.size:
        raise _no_file(version)
    return version


def _original(version: VersionRecord) -> bytes:
    try:
        return current().blobs.read(version.document_id, original_name(version.sha256))
    except FileNotFoundError:
        raise _no_file(version) from None


def _no_file(version: VersionRecord) -> DocumentNotFound:
    return DocumentNotFound(
        f"version {version.version} of document {version.document_id!r} has no file",
        hint="Its text was sent, its chunks were provided, or its file is no longer stored.",
    )


def _type(filename: str) -> str:
    """The media type of a file by the ending of its name."""
    suffix = PurePath(filename).suffix.lower()
    media_type = PLAIN if suffix == ".txt" else TEXT_NAMES.get(suffix) or BINARY_NAMES.get(suffix)
    return media_type or UNKNOWN

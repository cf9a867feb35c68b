"""/v1/collections/{name}/chunks:preview: how a text or file would be cut; nothing is stored."""

import base64
from typing import Any, TypeVar

from flask import Response, abort, request
from flask_openapi3 import APIBlueprint, Tag
from pydantic import ValidationError

from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.http.problems import invalid
from callslip.api.http.slots import Slots
from callslip.api.http.uploads import sent_form
from callslip.api.identity.current import check_scope
from callslip.api.messages import chunks as messages
from callslip.api.v1.collections import CollectionPath
from callslip.config.settings import MEGABYTE, ChunkingSettings
from callslip.errors import EmptyFile, FileTooLarge, InvalidRequest
from callslip.stores.naming import clean_filename
from callslip.tasks import compute

LARGEST_MB = 10
"""The largest text or file of a preview."""

MOST_WAITING = 2
"""The maximum previews for which threads of one process wait."""

GRACE_SECONDS = 30.0
"""How long a preview may wait for a worker and be cut, besides the time to read the file."""

_TAKES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": messages.PreviewForm.model_json_schema()},
            "application/json": {"schema": messages.PreviewText.model_json_schema()},
        },
    }
}

blueprint = APIBlueprint("previews", __name__, abp_tags=[Tag(name="documents")])

_slots = Slots()

C = TypeVar("C", bound=messages.Cut)


@blueprint.post(
    "/v1/collections/<string:name>/chunks:preview",
    responses={200: messages.ChunksPreview},
    openapi_extensions=_TAKES,
)
def preview_chunks(path: CollectionPath) -> Response:
    """Cut a text or file as ingestion into the collection would, with other lengths if named.

    Nothing is stored. An ingest worker reads the file in its child process; at most 10 MB.
    """
    cut, filename, content = _sent()
    check_scope(path.name, cut.tenant)
    options = current().ledger.collections.writable(path.name).options
    if not content:
        raise EmptyFile(f"{filename!r} has no bytes")
    if len(content) > LARGEST_MB * MEGABYTE:
        raise FileTooLarge(
            f"{filename!r} has {len(content) / MEGABYTE:.0f} MB, a preview takes {LARGEST_MB}",
            hint="Send a part of it; ingestion takes larger files.",
        )
    job = {
        "content": base64.b64encode(content).decode(),
        "filename": filename,
        "collection": path.name,
        "lengths": cut.model_dump(include=set(ChunkingSettings.model_fields)),
        "limit": cut.limit,
        "json_fields": options.json_fields.settings(),
        "scrub": options.scrub == "text",
    }
    with _slots.reserve(MOST_WAITING, "previews are being cut"):
        seconds = current().settings.extract.timeout_seconds + GRACE_SECONDS
        made = compute.run(current(), "chunks.preview", job, seconds=seconds)
    return answer(messages.ChunksPreview.model_validate(made))


def _sent() -> tuple[messages.Cut, str, bytes]:
    """The lengths, the file's name and the content of the request."""
    if request.mimetype == "multipart/form-data":
        sent, stream, form = sent_form(request)
        fields = {name: value for name, value in form.items() if value != ""}
        cut = _validated(messages.Cut, fields)
        return cut, clean_filename(sent), stream.read(LARGEST_MB * MEGABYTE + 1)
    if request.mimetype == "application/json":
        body = _validated(messages.PreviewText, request.get_json(silent=True))
        return body, clean_filename(body.name), body.text.encode("utf-8", "replace")
    raise InvalidRequest(
        f"the content type is {request.mimetype or 'missing'!r}",
        hint="Send multipart/form-data with a part named file, or application/json with text.",
    )


def _validated(kind: type[C], value: object) -> C:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        abort(invalid(error))

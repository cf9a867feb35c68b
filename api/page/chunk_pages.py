"""The chunks of a document at /page/chunks, each with a form to correct its text."""

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for

from callslip.api.http import responses
from callslip.api.http.context import current
from callslip.api.identity.current import caller
from callslip.api.messages.chunks import ChunksQuery
from callslip.api.page.visible import title_in_file, visible_document
from callslip.api.v1.chunks.listing import correction, listed
from callslip.api.v1.chunks.routes import correct
from callslip.errors import CallslipError, InvalidRequest
from callslip.messages.values import whole_number

SHOWN = 50
"""Chunks on one page of the list."""

blueprint = Blueprint("chunk_pages", __name__)


@blueprint.get("/page/chunks")
def chunk_list() -> Response:
    """List the chunks of the document `document`; that with the id `correct` has a form.

    That with the id `same` has a note that its text is the same as before. No chunk can be
    corrected while another version than the shown one is the newest.
    """
    document = visible_document(request.args.get("document", ""))
    return _page(document.document_id, request.args.get("correct", ""))


@blueprint.post("/page/corrections")
def correct_chunk() -> Response:
    """Correct the chunk of the form, and show the list; after an error, the form with its text."""
    document_id = visible_document(request.form.get("document", "")).document_id
    chunk_id, text = request.form.get("chunk", ""), request.form.get("text", "")
    version = request.form.get("version", type=whole_number)
    try:
        accepted = correct(document_id, {chunk_id: text}, version)
    except CallslipError as error:
        return _page(document_id, chunk_id, text, error)
    target = url_for(
        "chunk_pages.chunk_list",
        document=document_id,
        after=_after(),
        same=None if accepted.fresh else chunk_id,
        _anchor=f"chunk-{chunk_id}",
    )
    return make_response(redirect(target, 303))


@blueprint.errorhandler(CallslipError)
def _failed(error: CallslipError) -> Response:
    return make_response(render_template("problem.html", error=error), error.status)


def _page(
    document_id: str, chosen: str, text: str | None = None, error: CallslipError | None = None
) -> Response:
    """The list from `after` on. `text` replaces that of the chosen chunk in its form.

    Raises the error for a caller who may correct and not read.
    """
    if error is not None and not caller().may("read"):
        raise error
    after = _after()
    if error is None and after is None and request.values.get("after"):
        raise InvalidRequest("after is no next_after of a page of chunks")
    query = ChunksQuery(limit=SHOWN, after=after, parents=False)
    record, page = current().ledger.documents.get(document_id), listed(document_id, query)
    may_correct = caller().may("write") and record.newest.version == page.version
    left_out = [each for each in record.newest.corrections if each.left_out is not None]
    rendered = render_template(
        "chunks.html",
        document=responses.document(record),
        title=record.newest.title or title_in_file(record),
        page=page,
        after=after,
        chosen=chosen,
        text=text,
        same=request.args.get("same"),
        unsaved=text is not None
        and not (may_correct and any(each.chunk_id == chosen for each in page.chunks)),
        error=error,
        left_out=[correction(each) for each in left_out],
        may_correct=may_correct,
    )
    return make_response(rendered, error.status if error else 200)


def _after() -> str | None:
    """The position from which the list begins; None if there is none or it is not valid."""
    after = request.values.get("after") or None
    try:
        return ChunksQuery(limit=SHOWN, after=after, parents=False).after
    except ValueError:
        return None

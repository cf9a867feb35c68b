"""The page of one document at /page/documents/ID: a form that edits it, and its history.

It needs no script. The form has the document's ETag, so that of two people the second is refused.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for
from pydantic import ValidationError

from callslip.api.http import responses
from callslip.api.http.context import current
from callslip.api.http.problems import message_of
from callslip.api.http.validity import with_validity
from callslip.api.identity.current import caller
from callslip.api.messages.documents import Change
from callslip.api.page.visible import title_in_file, visible_document
from callslip.api.v1.documents import change, edit_of
from callslip.api.v1.versions import restore
from callslip.errors import CallslipError, InvalidRequest, PreconditionFailed
from callslip.stores.properties.values import MOST_PROPERTIES
from callslip.stores.records import VALIDITY
from callslip.vocabulary import Value

blueprint = Blueprint("editing", __name__)

LABELS = {
    "title": "Title",
    "url": "Address of its source",
    "language": "Language",
    "valid_from": "In force from",
    "valid_to": "No longer in force from",
}
"""The labels of the form's fields, by the names that the API has for them."""

_DAYS = re.compile(rf"(?:property )?'?\b({'|'.join(VALIDITY)})\b'?")


@blueprint.get("/page/documents/<string:document>")
def show_document(document: str) -> Response:
    """The form and the history of a document."""
    return _html(visible_document(document).document_id)


@blueprint.post("/page/documents/<string:document>")
def save_document(document: str) -> Response:
    """Make the edit of the form, and show the document; after an error, the form with the error."""
    document_id = visible_document(document).document_id
    try:
        edit = edit_of(Change.model_validate(_changes(request.form)))
        change(document_id, edit, {request.form.get("etag", "")})
    except ValidationError as error:
        first = error.errors()[0]
        field, *rest = map(str, first["loc"])
        name = ".".join((LABELS.get(field, field), *rest))
        return _html(document_id, InvalidRequest(f"{name}: {message_of(first)}"))
    except PreconditionFailed as error:
        error.advice = "The form has the present values with your changes: check them, and save."
        return _html(document_id, error)
    except CallslipError as error:
        error.detail, error.advice = _labelled(error.detail), _labelled(error.advice)
        return _html(document_id, error)
    return make_response(redirect(url_for(".show_document", document=document_id), 303))


def _labelled(text: str) -> str:
    """A message with the labels of the form instead of `valid_from` and `valid_to`."""
    return _DAYS.sub(lambda name: f"“{LABELS[name[1]]}”", text)


@blueprint.post("/page/documents/<string:document>/restore")
def restore_version(document: str) -> Response:
    """Restore the version that the form names: what undoes an edit."""
    document_id = visible_document(document).document_id
    try:
        version = request.form.get("version", "")
        if not re.fullmatch(r"[1-9][0-9]{0,8}", version):
            raise InvalidRequest("version is no number of a version")
        restore(document_id, int(version))
    except CallslipError as error:
        return _html(document_id, error)
    return make_response(redirect(url_for(".show_document", document=document_id), 303))


@blueprint.errorhandler(CallslipError)
def _failed(error: CallslipError) -> Response:
    return make_response(render_template("problem.html", error=error), error.status)


def _html(document_id: str, error: CallslipError | None = None) -> Response:
    """The page; after an error, the form has what the user changed, so that no input is lost.

    Raises the error for a caller who may edit and not read.
    """
    if error is not None and not caller().may("read"):
        raise error
    ledger = current().ledger
    record = ledger.documents.get(document_id)
    document, properties = with_validity([record])[0], record.newest.properties
    values = {
        "title": record.newest.title,
        "url": record.newest.url,
        "language": record.newest.language,
        **{name: str(properties.get(name, "")) for name in VALIDITY},
        "properties": _as_lines(properties),
    }
    shown = render_template(
        "document.html",
        document=document,
        in_file=title_in_file(record),
        title=record.newest.title,
        labels=LABELS,
        versions=[responses.version(past) for past in ledger.versions.of(document_id)],
        was=json.dumps(values),
        values=values | (_typed(properties) if error else {}),
        error=error,
    )
    return make_response(shown, error.status if error else 200)


def _typed(properties: Mapping[str, Value]) -> dict[str, str]:
    """The values that the user changed in the form, over the present ones of the document."""
    try:
        changes = _changes(request.form)
    except InvalidRequest:
        return {name: request.form.get(name, "") for name in (*LABELS, "properties")}
    merged = {**properties, **changes.pop("properties", {})}
    left = {name: value for name, value in merged.items() if value is not None}
    return {n: value or "" for n, value in changes.items()} | {"properties": _as_lines(left)}


def _changes(form: Mapping[str, str]) -> dict[str, Any]:
    """The merge patch of what the user changed in the form; the field `was` has what it showed."""
    was = _read(form.get("was", ""))
    if not isinstance(was, dict):
        raise InvalidRequest("the form is not complete", hint="Load the page again.")
    changes: dict[str, Any] = {
        name: text or None
        for name in LABELS
        if (text := form.get(name, "").strip()) != str(was.get(name, ""))
    }
    before = _from_lines(str(was.get("properties", "")))
    after = _from_lines(form.get("properties", ""))
    properties: dict[str, Value | None] = dict.fromkeys(before.keys() - after.keys())
    properties |= {n: v for n, v in after.items() if n not in before or _differ(v, before[n])}
    return changes | ({"properties": properties} if properties else {})


def _differ(one: Value, other: Value) -> bool:
    return json.dumps(one) != json.dumps(other)  # in Python, 1 and True are equal


def _as_lines(properties: Mapping[str, Value]) -> str:
    """Properties as lines `name=value`; a text stands as it is unless JSON would read it."""
    return "\n".join(f"{n}={_shown(v)}" for n, v in sorted(properties.items()) if n not in VALIDITY)


def _shown(value: Value) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str) or value.splitlines() != [value] or value != value.strip():
        return text
    return value if _read(value) == value else text


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _from_lines(text: str) -> dict[str, Value]:
    values: dict[str, Value] = {}
    if re.search(r"\\u[dD][89a-fA-F]", text):
        raise InvalidRequest(
            "a property has half of a character", hint="Write the character itself, without \\u."
        )
    for line in filter(str.strip, text.splitlines()):
        name, equals, value = line.partition("=")
        if not equals:
            raise InvalidRequest(f"the line {line.strip()[:60]!r} is not name=value")
        if name.strip() in values:
            raise InvalidRequest(f"the property {name.strip()!r} has two lines")
        if len(values) >= MOST_PROPERTIES:
            raise InvalidRequest(f"more than {MOST_PROPERTIES} properties")
        values[name.strip()] = _read(value.strip())
    return values

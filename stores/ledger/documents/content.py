"""Compares documents: which have the same bytes, and whether a submission is a new version."""

import json
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from callslip.errors import DocumentNotFound, DuplicateContent
from callslip.readers import Reader
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.readable import limited
from callslip.stores.ledger.base.records import Submission

_D, _V = schema.documents.c, schema.versions.c


# Statements of the hot path are built once: building one costs more than running it.
_HOLDERS = (
    select(_D.document_id)
    .join(schema.versions, _V.document_id == _D.document_id)
    .where(_D.collection == bindparam("collection"), _D.tenant == bindparam("tenant"))
    .where(_D.deleted_at.is_(None), _D.name != bindparam("but"))
    .where(_V.sha256 == bindparam("sha256"), _V.state.in_(("queued", "live")))
)


def holders(
    connection: Connection,
    collection: str,
    tenant: str,
    sha256: str,
    reader: Reader | None,
    *,
    but: str,
) -> list[str]:
    """The ids of documents with these bytes that the reader may read, except the name `but`."""
    values = {"collection": collection, "tenant": tenant, "sha256": sha256, "but": but}
    query = limited(_HOLDERS, _D.document_id, reader)
    return list(connection.scalars(query, values))


def duplicate(connection: Connection, document_id: str) -> DuplicateContent:
    """The DuplicateContent error that names this document."""
    name = connection.scalar(select(_D.name).where(_D.document_id == document_id))
    return DuplicateContent(f"document {name!r} ({document_id}) holds the same content")


def no_version(document_id: str, version: int) -> DocumentNotFound:
    """The error of a version that does not exist."""
    return DocumentNotFound(
        f"document {document_id!r} has no version {version}",
        hint="`callslip versions ID` or GET /v1/documents/ID/versions lists them.",
    )


def same_content(newest: Row[Any], submission: Submission) -> bool:
    """Whether a submission says the same as the newest version, its metadata included."""
    return all(
        getattr(newest, name) == getattr(submission, name)
        for name in ("sha256", "title", "filename", "url", "language")
    ) and _as_json(newest.properties) == _as_json(submission.properties)


def _as_json(properties: dict[str, Any] | None) -> str:
    """Serialize properties for comparison: in Python 1, 1.0 and True are equal."""
    return json.dumps(properties, sort_keys=True)

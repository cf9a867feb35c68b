"""The condition that a reader may read a document, which every query for a reader has."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Select, or_, select, true

from callslip.readers import Reader
from callslip.stores.ledger.base import schema

_D, _R = schema.documents.c, schema.readers.c


CACHED = "embedded"
"""A count of the step `embed` that tells whether another document has the same text."""


def readable_counts(
    counts: Mapping[str, Any] | None, reader: Reader | None
) -> dict[str, Any] | None:
    """The counts of a step, without those that tell of other documents."""
    if counts is None or reader is None:
        return counts if counts is None else dict(counts)
    return {name: count for name, count in counts.items() if name != CACHED}


def readable(reader: Reader | None) -> ColumnElement[bool]:
    """The condition on the table of documents; always true if `reader` is None."""
    if reader is None:
        return true()
    mine = select(_R.audience).where(_R.reader.in_(sorted(reader.names)))
    return or_(_D.audience == "", _D.audience.in_(mine))


def of_readable(document_id: ColumnElement[str], reader: Reader | None) -> ColumnElement[bool]:
    """The condition that a column has the id of a document that the reader may read."""
    if reader is None:
        return true()
    return document_id.in_(select(_D.document_id).where(readable(reader)))


def limited(
    query: Select[Any], document_id: ColumnElement[str], reader: Reader | None
) -> Select[Any]:
    """The query with `of_readable`, or the query itself where that is always true."""
    return query if reader is None else query.where(of_readable(document_id, reader))

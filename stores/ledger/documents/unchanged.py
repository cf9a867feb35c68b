"""Finds which of many submissions would change nothing, in one query."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, exists, select

from callslip.readers import Reader
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.readable import readable
from callslip.stores.ledger.base.records import Submission
from callslip.stores.ledger.documents.content import same_content
from callslip.stores.ledger.documents.edits import completed
from callslip.stores.ledger.documents.pages import lacks_pages

_D, _V = schema.documents.c, schema.versions.c

_COMPARED = (
    *(_V.state, _V.sha256, _V.title, _V.filename, _V.url, _V.language, _V.properties),
    *(_V.by_hand, _V.pages),
)


class UnchangedDocuments:
    """Compares submissions with the live documents of the same names."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def among(
        self, collection: str, submissions: Sequence[Submission], *, tenant: str = ""
    ) -> set[int]:
        """Return the positions of submissions of which `Documents.submit` would make no version.

        The newest version of these documents is live, and no document is within another one, which
        a submission would take out of it. Readers of the submissions are not compared.
        """
        newer = schema.versions.alias()
        query: Select[Any] = (
            select(_D.name, *_COMPARED)
            .join(schema.versions, _V.document_id == _D.document_id)
            .where(_D.collection == collection, _D.tenant == tenant, _D.deleted_at.is_(None))
            .where(_D.name.in_([submission.name for submission in submissions]))
            .where(_D.parent_id.is_(None))
            .where(_V.state == "live", readable(self._reader))
            .where(
                ~exists().where(newer.c.document_id == _V.document_id, newer.c.version > _V.version)
            )
        )
        with self._database.reading() as connection:
            newest = {row.name: row for row in connection.execute(query)}
        return {
            position
            for position, submission in enumerate(submissions)
            if (row := newest.get(submission.name)) is not None
            and same_content(row, completed(submission, row)[0])
            and not lacks_pages(row)
        }

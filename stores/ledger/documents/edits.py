"""Edits: changes of what is known of a document, without another content.

An edit makes a version of the same bytes, which goes live whole as every version does.
"""

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row

from callslip.errors import Conflict, PreconditionFailed
from callslip.readers import Reader
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.records import Accepted, Edit, Submission, etag_of
from callslip.stores.ledger.documents.readers import locked, set_readers
from callslip.stores.ledger.documents.versions import add_version, check_file, newest_of
from callslip.stores.ledger.outbox import events
from callslip.stores.properties.values import check_properties
from callslip.stores.records import RESERVED, VALIDITY

STATED = ("title", "url", "language")

_PROPERTY = "properties."


@dataclass(frozen=True)
class Edited:
    """The result of an edit: `accepted` is not `fresh` if only the readers or nothing changed.

    `due` has ids and live versions of documents whose chunks are to be written with their readers.
    """

    accepted: Accepted
    due: tuple[tuple[str, int], ...] = ()


class Edits:
    """Changes what is known of documents."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def make(self, document_id: str, edit: Edit, *, if_match: Collection[str] | None) -> Edited:
        """Change a document in one transaction: its readers at once, the rest by a new version.

        The new version has the content of the newest one, and supersedes it if it is queued.
        `if_match` are entity tags, of which the document must have one; None: any document.

        Raises DocumentNotFound, PreconditionFailed if no tag matches, InvalidRequest if the
        properties after the edit are not valid, and Conflict if the newest version failed or has no
        file.
        """
        now = time.time()
        with self._database.writing() as connection:
            document = locked(connection, document_id, self._reader)
            newest = newest_of(connection, document_id)
            if if_match is not None and etag_of(newest.version, document.audience) not in if_match:
                raise PreconditionFailed(
                    f"document {document_id} is at version {newest.version} now, or has other"
                    " readers"
                )
            values, edited = _applied(edit, newest)
            if edited:
                _check_editable(newest)
            due: list[tuple[str, int]] = []
            if edit.readers is not None:
                due = set_readers(connection, document, edit.readers)
            if not edited:
                return Edited(Accepted(document_id, newest.version, fresh=False), tuple(due))
            new = newest.version + 1
            values |= {"edited": edited, "previous_version": document.live_version}
            add_version(connection, document, newest, new, now, **values)
            data = {"edited": edited}
            events.add(connection, "document.edited", document_id, new, now, data=data)
        return Edited(Accepted(document_id, new, fresh=True), tuple(due))


def completed(submission: Submission, newest: Row[Any]) -> tuple[Submission, list[str] | None]:
    """Complete a submission from the newest version; also return what stays set by hand.

    A field of None has the stored value if the bytes are the same. With `keeps_edits`, what edits
    set has the stored value in any case.
    """
    same, by_hand = submission.sha256 == newest.sha256, newest.by_hand or []
    stays = [n for n in (*STATED, "properties") if same and getattr(submission, n) is None]
    if submission.keeps_edits:
        stays += [name for name in STATED if name in by_hand]
    values = {name: getattr(newest, name) for name in stays}
    if submission.keeps_edits and "properties" not in values:
        edited = {n: v for n, v in newest.properties.items() if _PROPERTY + n in by_hand}
        values["properties"] = {**(submission.properties or {}), **edited}
    left = [name for name in by_hand if name.partition(".")[0] in values]
    return replace(submission, **values), left or None


def _applied(edit: Edit, newest: Row[Any]) -> tuple[dict[str, Any], list[str]]:
    """The columns after the edit, and the names of what it changes (RFC 7396)."""
    values = {n: value for n in STATED if (value := getattr(edit, n)) is not None}
    was = newest.by_hand or []
    before = dict(newest.properties)
    after = _merged({} if edit.anew else before, edit.properties)
    edited = [name for name, value in values.items() if value != getattr(newest, name)]
    edited += [
        _PROPERTY + name
        for name in sorted(before.keys() | after.keys())
        if _as_json(before.get(name)) != _as_json(after.get(name))
        or (name in VALIDITY and name in edit.properties and _PROPERTY + name not in was)
    ]
    here = {n for n in STATED if values.get(n, getattr(newest, n))} | {_PROPERTY + n for n in after}
    by_hand = sorted(here & {*was, *edited})
    return values | {"properties": after, "by_hand": by_hand or None}, edited


def _merged(present: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    check_properties(
        {n: True for n in changes if n not in VALIDITY}, reserved=RESERVED
    )  # their names
    merged = {n: v for n, v in {**present, **changes}.items() if v is not None}
    return dict(check_properties(merged, reserved=RESERVED))


def _check_editable(newest: Row[Any]) -> None:
    """Raise Conflict if no version can be made of the newest one's content."""
    if newest.state == "failed":
        raise Conflict(
            f"version {newest.version}, the newest, failed",
            hint="Retry it, send another file, or roll back to a version that was live; then edit.",
        )
    check_file(newest.size)


def _as_json(value: Any) -> str:
    """Serialize a value for comparison: in Python 1, 1.0 and True are equal."""
    return json.dumps(value, sort_keys=True)

"""Makes versions with corrections of their text, and records which of them apply."""

import time
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import select, update

from callslip.errors import InvalidCorrection
from callslip.readers import Reader
from callslip.stores.ledger.base import corrections, schema
from callslip.stores.ledger.base.corrections import MOST_CORRECTIONS, Corrections
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.locks import lock_document
from callslip.stores.ledger.base.readable import of_readable
from callslip.stores.ledger.base.records import Accepted, Claim
from callslip.stores.ledger.documents.content import no_version
from callslip.stores.ledger.documents.progress import claimed_row
from callslip.stores.ledger.documents.versions import add_version, check_newest, newest_of
from callslip.stores.ledger.outbox import events
from callslip.vocabulary import LeftOut

_V = schema.versions.c


class CorrectedVersions:
    """Makes versions that correct the text of the version before."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database, self._reader = database, reader

    def add(self, document_id: str, based_on: int, new: Corrections) -> Accepted:
        """Queue a new version with the content of the live version `based_on` and more corrections.

        Raises DocumentNotFound if the document does not exist, Conflict if `based_on` is not its
        newest version or not live: another request came first. Raises InvalidCorrection if the
        version would have more than `MOST_CORRECTIONS`.
        """
        now = time.time()
        with self._database.writing() as connection:
            document = lock_document(connection, document_id)
            readable = connection.scalar(
                select(_V.version)
                .where(_V.document_id == document_id, _V.version == based_on)
                .where(of_readable(_V.document_id, self._reader))
            )
            if document is None or readable is None:
                raise no_version(document_id, based_on)
            newest = newest_of(connection, document_id)
            check_newest(based_on, newest.version, document.live_version)
            known = corrections.from_json(corrections.carried(newest.corrections))
            check_number(len(known) + len(new))
            version = newest.version + 1
            made = corrections.as_json((*known, *new))
            more = {"previous_version": based_on, "corrections": made}
            add_version(connection, document, newest, version, now, **more)
        return Accepted(document_id, version, fresh=True)

    def settle(self, claim: Claim, left_out: Sequence[LeftOut | None]) -> None:
        """Record why corrections of the claimed version do not apply; None if one does.

        Adds an event if any does not. Raises LeaseLost if the claim no longer owns the step.
        """
        settled = [
            replace(each, left_out=why)
            for each, why in zip(claim.record.corrections, left_out, strict=True)
        ]
        missed = [each.correction_id for each in settled if each.left_out is not None]
        with self._database.writing() as connection:
            claimed_row(connection, claim)
            connection.execute(
                update(schema.versions)
                .where(_V.document_id == claim.document_id, _V.version == claim.version)
                .values(corrections=corrections.as_json(settled))
            )
            if missed:
                events.add(
                    connection,
                    "document.uncorrected",
                    claim.document_id,
                    claim.version,
                    time.time(),
                    step=claim.step,
                    data={"corrections": missed},
                )


def check_number(corrections: int) -> None:
    """Raise InvalidCorrection if a version may not have so many corrections."""
    if corrections > MOST_CORRECTIONS:
        raise InvalidCorrection(
            f"the text would have {corrections} corrections, at most {MOST_CORRECTIONS} are kept",
            hint="Correct the file itself, and send it under the document's name.",
        )

"""Submits the attachments of a file as documents of their own."""

import hashlib
import io
from contextlib import suppress
from pathlib import PurePosixPath

from callslip.config.settings import MEGABYTE, ExtractSettings
from callslip.errors import Conflict, ExtractionLimit
from callslip.ingestion.intake import take_in
from callslip.ingestion.steps.work import Work
from callslip.ingestion.values import Attachment, ExtractedText
from callslip.stores.ledger import Submission
from callslip.stores.ledger.documents.attachments import Position

LONGEST_NAME = 1024
MOST_NAMES = 100
"""The maximum number of names to try for a child whose name other documents already have."""


def bring_in(work: Work, text: ExtractedText) -> None:
    """Submit attachments to the collection and tenant of their parent, with its properties.

    Idempotent. Raises ExtractionLimit, before anything is submitted, if the attachments are too
    many, too large or nested too deeply. A file that equals one of its own parents is left out.
    """
    if not text.attachments:
        return
    children = work.context.ledger.child_documents
    position = children.position(work.claim.document_id)
    new = [a for a in text.attachments if a.sha256 not in position.contents]
    _check(new, position, work.context.settings.extract)
    unwanted = children.unwanted(work.claim.document_id, work.claim.version)
    for attachment in new:
        if _name(work.version.name, attachment.name) not in unwanted:
            _submit(work, attachment)


def _check(new: list[Attachment], position: Position, limits: ExtractSettings) -> None:
    if new and position.depth >= limits.max_depth:
        raise ExtractionLimit(
            f"files lie within files more than {limits.max_depth} deep",
            hint="Unpack the file and send what is in it, or raise extract.max_depth.",
        )
    if position.documents + len(new) > limits.max_members:
        raise ExtractionLimit(
            f"with the files within its files there are more than {limits.max_members:,}",
            hint="Send them by themselves, or raise extract.max_members in the settings.",
        )
    if position.size + sum(a.size for a in new) > limits.max_members_mb * MEGABYTE:
        raise ExtractionLimit(
            f"with the files within its files there are more than {limits.max_members_mb:,} MB",
            hint="Send them by themselves, or raise extract.max_members_mb in the settings.",
        )


def _submit(work: Work, attachment: Attachment) -> None:
    """Submit under the first name that is free or belongs to this parent already."""
    version, ledger = work.version, work.context.ledger
    path = PurePosixPath(attachment.name)
    for number in range(1, MOST_NAMES + 1):
        inner = path if number == 1 else path.with_name(f"{path.stem} ({number}){path.suffix}")
        submission = Submission(
            name=_name(version.name, str(inner)),
            filename=path.name,
            title="",
            sha256=attachment.sha256,
            size=attachment.size,
            properties=version.properties,
            priority=version.priority,
            keeps_edits=True,
        )
        if ledger.child_documents.taken(version, submission.name):
            continue
        with suppress(Conflict):  # another request took the name in the meantime
            take_in(
                ledger,
                work.context.blobs,
                version.collection,
                submission,
                io.BytesIO(attachment.content),
                tenant=version.tenant,
                allow_duplicate=True,
                parent=work.claim,
            )
            return
    raise Conflict(f"{MOST_NAMES} documents of other origin have the names of files in this one")


def _name(parent: str, member: str) -> str:
    """`PARENT/member`; a hash replaces the middle of a name that is too long."""
    name = f"{parent}/{member}"
    if len(name) <= LONGEST_NAME:
        return name
    mark = hashlib.blake2b(name.encode(), digest_size=6).hexdigest()
    return f"{name[: LONGEST_NAME // 2 - len(mark) - 2]}/{mark}/{name[-LONGEST_NAME // 2 :]}"

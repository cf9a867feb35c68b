"""The files within a file, on their way as documents of their own."""

import hashlib
import io
from contextlib import suppress
from pathlib import PurePosixPath

from callslip.errors import Conflict, ExtractionLimit
from config.settings import MEGABYTE, ExtractSettings
from ingestion.intake import take_in
from ingestion.parts import Attachment, ExtractedText
from ingestion.steps import Work
from stores.ledger import Submission
from stores.ledger.family import Place

LONGEST_NAME = 1024
MOST_NAMES = 100
"""Tried where documents of other origin have a child's name."""


def bring_in(work: Work, text: ExtractedText) -> None:
    """Submit them for the collection and tenant of their parent, with its properties.

    Doing it again submits nothing twice. Raises ExtractionLimit, before anything is submitted, for
    too many, too large or too deep; a file that is one of those it lies within is left out.
    """
    if not text.attachments:
        return
    family = work.shop.ledger.family
    place = family.place(work.claim.document_id)
    found = [a for a in text.attachments if a.sha256 not in place.contents]
    _check(found, place, work.shop.settings.extract)
    unwanted = family.unwanted(work.claim.document_id, work.claim.version)
    for attachment in found:
        if _name(work.version.name, attachment.name) not in unwanted:
            _submit(work, attachment)


def _check(found: list[Attachment], place: Place, limits: ExtractSettings) -> None:
    if found and place.depth >= limits.max_depth:
        raise ExtractionLimit(
            f"files lie within files more than {limits.max_depth} deep",
            hint="Unpack the file and send what is in it, or raise extract.max_depth.",
        )
    if place.documents + len(found) > limits.max_members:
        raise ExtractionLimit(
            f"with the files within its files there are more than {limits.max_members:,}",
            hint="Send them by themselves, or raise extract.max_members in the settings.",
        )
    if place.size + sum(a.size for a in found) > limits.max_members_mb * MEGABYTE:
        raise ExtractionLimit(
            f"with the files within its files there are more than {limits.max_members_mb:,} MB",
            hint="Send them by themselves, or raise extract.max_members_mb in the settings.",
        )


def _submit(work: Work, attachment: Attachment) -> None:
    """Under the first name that is free or this parent's already."""
    version, ledger = work.version, work.shop.ledger
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
        )
        if ledger.family.taken(version, submission.name):
            continue
        with suppress(Conflict):  # somebody took the name meanwhile
            take_in(
                ledger,
                work.shop.blobs,
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
    """`PARENT/member`; the middle of one that is too long gives way to a hash."""
    name = f"{parent}/{member}"
    if len(name) <= LONGEST_NAME:
        return name
    mark = hashlib.blake2b(name.encode(), digest_size=6).hexdigest()
    return f"{name[: LONGEST_NAME // 2 - len(mark) - 2]}/{mark}/{name[-LONGEST_NAME // 2 :]}"

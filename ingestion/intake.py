"""Document intake: stores the original and records the version.

The HTTP API, the sources and attachments use the same functions.
"""

import uuid
from typing import IO

from callslip.errors import DuplicateContent, NameTaken
from callslip.stores.blobs import Blobs, original_name
from callslip.stores.ledger import Accepted, Claim, Ledger, Submission


def take_in(
    ledger: Ledger,
    blobs: Blobs,
    collection: str,
    submission: Submission,
    content: IO[bytes],
    *,
    tenant: str = "",
    allow_duplicate: bool = False,
    parent: Claim | None = None,
) -> Accepted:
    """Store an original and record it as a version; the caller queues a new version.

    `content` is a stream at its start. `parent` is the claim on the step that found the document
    within another document. Raises DuplicateContent if another name already has these bytes.
    """
    documents = ledger.documents
    if not allow_duplicate:
        twins = documents.with_content(
            collection, submission.sha256, but=submission.name, tenant=tenant
        )
        if twins:
            raise documents.duplicate(twins[0])
    known = documents.id_of(collection, submission.name, tenant=tenant)
    document_id = known or uuid.uuid4().hex
    original = original_name(submission.sha256)
    blobs.write(document_id, original, content)
    try:
        accepted = documents.submit(
            collection,
            submission,
            document_id,
            tenant=tenant,
            parent=parent,
            alone=not allow_duplicate,
        )
    except (DuplicateContent, NameTaken):  # another request used another name
        if known is None:
            blobs.delete(document_id)
        raise
    if accepted.document_id != document_id:  # another request took the name
        # A worker that has the version already tries again until the original is there.
        content.seek(0)
        blobs.write(accepted.document_id, original, content)
        blobs.delete(document_id)
    return accepted

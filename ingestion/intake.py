"""Taking a document in: its original stored, its version recorded.

The desk, the sources and files that bring others with them take documents in by the same lines.
"""

import uuid
from typing import IO

from callslip.errors import DuplicateContent
from stores.blobs import Blobs, original_name
from stores.ledger import Accepted, Claim, Ledger, Submission


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
    """Store an original and record it as a version; the caller queues what is fresh.

    `content` is a stream at its start. DuplicateContent where another name holds these bytes.
    `parent` is the claim on the step that found the document within another.
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
    except DuplicateContent:  # it came under another name in this moment
        if known is None:
            blobs.delete(document_id)
        raise
    if accepted.document_id != document_id:  # another request made this name meanwhile
        content.seek(0)
        blobs.write(accepted.document_id, original, content)
        blobs.delete(document_id)
    return accepted

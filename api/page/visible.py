"""The document that a page is about, if its caller may see it."""

from callslip.api.http.context import current
from callslip.api.identity.current import caller
from callslip.api.v1.documents import extracted_of
from callslip.errors import CallslipError, DocumentNotFound
from callslip.stores.ledger import DocumentRecord


def visible_document(document_id: str) -> DocumentRecord:
    """Return a document that the caller may see; raise DocumentNotFound for any other.

    Pages call it, instead of a check by the name of an argument, because it must follow the check
    of a form's token: then the response does not tell whether the document exists.
    """
    if not caller().sees_all(current().ledger.documents.scopes([document_id])):
        raise DocumentNotFound(f"document {document_id!r} does not exist")
    return current().ledger.documents.get(document_id)


def title_in_file(record: DocumentRecord) -> str:
    """The title of a document that nobody gave another one: that in the file, or its name."""
    try:
        return extracted_of(record).title or record.newest.filename
    except CallslipError:  # not extracted yet, or its store is away
        return record.newest.filename

"""Errors of contents: files, manifests and sources that cannot be ingested."""

from callslip.errors.base import PermanentError


class DocumentError(PermanentError):
    """The file cannot be divided into chunks."""

    slug = "document-error"
    status = 422
    hint = "Correct the file and upload it again."


class EmptyFile(DocumentError):
    """The file has no bytes."""

    slug = "empty-file"
    hint = "Upload a file that has content."


class FileTooLarge(DocumentError):
    """The file is larger than this installation accepts."""

    slug = "file-too-large"
    status = 413
    hint = "Split the file, or raise api.max_upload_mb in the settings."


class UnsupportedType(DocumentError):
    """The content is of a type that Callslip does not read."""

    slug = "unsupported-type"
    status = 415
    hint = (
        "Convert it to PDF, an Office or OpenDocument format, HWPX, EPUB, HTML or text; docs/api.md"
        " lists what is read."
    )


class BrokenFile(DocumentError):
    """The content is damaged, or is not what its name says."""

    slug = "broken-file"
    hint = "Open the file in its own program, save it again, and upload that copy."


class NeedsPassword(DocumentError):
    """The file is encrypted."""

    slug = "needs-password"
    hint = "Save a copy without the password and upload that."


class NoTextLayer(DocumentError):
    """The pages are pictures."""

    slug = "no-text-layer"
    hint = (
        "Install tesseract where the ingest worker runs (Debian: tesseract-ocr tesseract-ocr-kor)"
        " and submit the file again, or run OCR over it (ocrmypdf) and submit the result."
    )


class NoText(DocumentError):
    """The file is undamaged but contains no text."""

    slug = "no-text"
    hint = "There is nothing to search in it; leave it out."


class GarbageText(DocumentError):
    """The file has text, but its characters mean nothing."""

    slug = "garbage-text"
    hint = (
        "Open it in its own program: if the text is readable there, save it as UTF-8 text or PDF"
        " and upload that."
    )


class ExtractionLimit(DocumentError):
    """Reading the file took more time or memory than one file may."""

    slug = "extraction-limit"
    hint = "Split the file, or raise extract.timeout_seconds and extract.memory_mb."


class ObjectRefused(DocumentError):
    """The store cannot keep one of the document's objects."""

    slug = "object-refused"
    hint = "Correct what is named, usually a property, and submit the document again."


class WorkerLost(DocumentError):
    """The worker died each time it worked on this document."""

    slug = "worker-lost"
    hint = "The document was set aside so that others go on; see the worker's log, then retry it."


class ManifestError(PermanentError):
    """Lines of a manifest are wrong, or contradict each other."""

    slug = "manifest-error"
    status = 422
    hint = "Nothing was sent. Correct these lines and run the same command again."


class SourceError(PermanentError):
    """A source, or one file of it, cannot be read as it is."""

    slug = "source-error"
    status = 422
    hint = "Correct what is named, then run `callslip source sync NAME`."


class AddressNotAllowed(SourceError):
    """The address is inside the network, where a URL from outside must not lead."""

    slug = "address-not-allowed"
    hint = (
        "Where it is meant, the settings can allow its network:"
        " sources.allow_networks, webhooks.allow_networks, chroma.allow_networks."
    )


class NothingListed(SourceError):
    """The listing of a source is empty, which is more likely a mistake than a deletion."""

    slug = "nothing-listed"
    hint = "Nothing was deleted. If it is meant: callslip source sync NAME --delete-missing --force"

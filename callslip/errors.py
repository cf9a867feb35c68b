"""Every error that Callslip raises on purpose.

    CallslipError
    ├── PermanentError              the same call will fail again: never retried
    │   ├── InvalidRequest          400  a value of the request is wrong
    │   │   ├── InvalidFilter
    │   │   ├── EmptyQuery
    │   │   ├── QueryTooLong
    │   │   ├── MetricNotIndexed    too many chunks to compare one by one
    │   │   └── StoreCannot         this kind of store has no such thing
    │   ├── KeyRefused              401  the desk asks for its key
    │   ├── NotFound                404
    │   │   ├── CollectionNotFound
    │   │   ├── TenantNotFound
    │   │   ├── VectorNotFound
    │   │   ├── DocumentNotFound
    │   │   ├── SourceNotFound
    │   │   ├── TaskNotFound
    │   │   ├── BatchNotFound
    │   │   ├── WebhookNotFound
    │   │   ├── DeliveryNotFound
    │   │   ├── TraceNotFound
    │   │   ├── FeedbackNotFound
    │   │   ├── ThreadNotFound
    │   │   └── TableNotFound       a table of somebody else, named to be attached
    │   ├── Conflict                409
    │   │   ├── CollectionExists
    │   │   ├── SourceExists
    │   │   ├── DuplicateContent
    │   │   └── AttachedReadOnly    the collection is a table of somebody else
    │   ├── DocumentError           422  this file cannot become chunks
    │   │   ├── EmptyFile
    │   │   ├── FileTooLarge        413
    │   │   ├── UnsupportedType     415
    │   │   ├── BrokenFile
    │   │   ├── NeedsPassword
    │   │   ├── NoTextLayer
    │   │   ├── NoText
    │   │   ├── GarbageText
    │   │   ├── ExtractionLimit
    │   │   ├── ObjectRefused       the store cannot keep one of its chunks
    │   │   └── WorkerLost          its worker died each time it was tried
    │   ├── ManifestError           422  lines of a manifest are wrong or contradict each other
    │   ├── SourceError             422  a source, or a file of it, cannot be read as it is
    │   │   ├── AddressNotAllowed   a URL leads to an address inside the network
    │   │   └── NothingListed       everything seems gone, which is more likely a mistake
    │   ├── EvaluationError             retrieval cannot be measured on this judged set
    │   │   └── JudgedSetError      its files are not in BEIR form
    │   ├── TuningError                 weights cannot be fitted, or a proposal is not applied
    │   │   ├── TooFewQuestions
    │   │   ├── NotBetter           the interval of its held-out gain holds 0
    │   │   └── GuardHolds          recorded outcomes are biased, and it may be worse without that
    │   ├── MoveError               a collection cannot be moved; it stands where it stood
    │   │   ├── ArchiveError        the file is no whole and sound archive
    │   │   └── CopyDiffers         both sides of a move do not hold the same
    │   ├── BadReply                502  a language model's reply is of no use, and what it cost
    │   ├── SettingsError           a setting is wrong
    │   └── StartError              `callslip up` cannot start or go on
    └── TransientError              503  worth another try, with backoff
        ├── DeskDown
        ├── BrokerDown
        ├── StoreDown
        │   ├── StoreReadOnly
        │   ├── StoreNotAllowed     the store's user lacks a privilege
        │   └── BatchInterrupted    some objects were written, and it says which
        ├── EmbedderDown
        ├── LanguageModelDown
        ├── RerankerDown            the fused order stands without it
        ├── SourceDown              a source does not answer
        ├── Overloaded
        │   ├── BacklogFull         429  too many documents wait
        │   ├── FeedbackLimit       429  one user gave as much as is taken
        │   └── ModelBudgetSpent    429  the language model's tokens of the day are used up
        ├── SearchTimeout           504
        ├── AnswerTimeout           504
        └── LeaseLost               another worker holds this step now

Each class carries the three things a reader needs: `slug` (stable, ends up in the problem's `type`
and in the ledger), `status` (over HTTP) and `hint` (what to do). The message names the thing that
is wrong; it never holds text of a document. What may be tried again says after how many seconds
(`retry_after`).
"""

from typing import ClassVar


class CallslipError(Exception):
    """Something went wrong and Callslip can say what."""

    slug: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    hint: ClassVar[str] = ""
    retry_after: float = 2.0

    def __init__(self, detail: str, *, hint: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.advice = self.hint if hint is None else hint
        if self.advice:
            self.add_note(self.advice)  # a traceback shows it

    @property
    def title(self) -> str:
        """The slug in words, e.g. `Needs password`."""
        return self.slug.replace("-", " ").capitalize()


class PermanentError(CallslipError):
    """The same call will fail again."""

    slug = "permanent-error"
    status = 400


class InternalError(PermanentError):
    """Something failed that should not: a mistake of Callslip's own."""

    slug = "internal-error"
    status = 500
    hint = "The log of the process has the place; please report it."


class TransientError(CallslipError):
    """The same call may succeed a little later."""

    slug = "transient-error"
    status = 503
    hint = "Try again in a moment; `callslip doctor` says which part is down."


class InvalidRequest(PermanentError):
    """A value of the request is wrong."""

    slug = "invalid-request"
    hint = "Correct the named value and send the request again."


class InvalidFilter(InvalidRequest):
    """`having_all` or `having_any` cannot be understood."""

    slug = "invalid-filter"
    hint = (
        "A key is `property` or `property OPERATOR`, the operator one of"
        " == != ~ > >= < <= !> !>= !< !<= @ contains in not-in."
    )


class EmptyQuery(InvalidRequest):
    """The query holds no text."""

    slug = "empty-query"
    hint = "Send at least one letter or digit as `query`."


class QueryTooLong(InvalidRequest):
    """The query is longer than a question can be."""

    slug = "query-too-long"
    hint = "Shorten the query, or raise search.max_query_chars in the settings."


class MetricNotIndexed(InvalidRequest):
    """The vectors are indexed by another metric, and too many match to be compared one by one."""

    slug = "metric-not-indexed"
    hint = "Leave `method` out, or narrow the search with a filter."


class StoreCannot(InvalidRequest):
    """The collection's store has no such thing."""

    slug = "store-cannot"
    hint = "docs/filters.md says what each store can do; `callslip migrate` moves a collection."


class KeyRefused(PermanentError):
    """The desk asks for its key, and the request has none or another one."""

    slug = "key-refused"
    status = 401
    hint = (
        "Send `Authorization: Bearer KEY` with the api.key of the desk's settings;"
        " `callslip` and its MCP server take it from CALLSLIP_API__KEY."
    )


class NotFound(PermanentError):
    """What the request names does not exist."""

    slug = "not-found"
    status = 404
    hint = "Check the name or id."


class CollectionNotFound(NotFound):
    """No collection has this name."""

    slug = "collection-not-found"
    hint = "`callslip status` or GET /v1/collections lists the names; `callslip ingest` makes one."


class TenantNotFound(NotFound):
    """The collection has no such tenant."""

    slug = "tenant-not-found"
    hint = "GET /v1/collections/NAME/tenants lists them; a tenant's first document makes it."


class VectorNotFound(NotFound):
    """The collection has no vector of this name."""

    slug = "vector-not-found"
    hint = "Leave `vector_name` out for the default vector."


class DocumentNotFound(NotFound):
    """No document has this id."""

    slug = "document-not-found"
    hint = "Use the document id that the upload answered; a deleted document is gone."


class SourceNotFound(NotFound):
    """The collection has no source of this name."""

    slug = "source-not-found"
    hint = "`callslip source list` shows every source with its collection."


class TaskNotFound(NotFound):
    """No task has this id."""

    slug = "task-not-found"
    hint = "Use the task id that the upload or the deletion answered."


class BatchNotFound(NotFound):
    """No batch has this id."""

    slug = "batch-not-found"
    hint = "Use the id that a submission gave as `batch`; batches are forgotten after a time."


class WebhookNotFound(NotFound):
    """No webhook has this id."""

    slug = "webhook-not-found"
    hint = "GET /v1/webhooks lists them."


class DeliveryNotFound(NotFound):
    """The webhook has no such delivery."""

    slug = "delivery-not-found"
    hint = "GET /v1/webhooks/ID/deliveries lists them; old ones are forgotten after a time."


class TraceNotFound(NotFound):
    """No search has this id."""

    slug = "trace-not-found"
    hint = "Use the trace_id of an answer; searches are forgotten after a time (memory, traces)."


class FeedbackNotFound(NotFound):
    """No feedback has this id."""

    slug = "feedback-not-found"
    hint = "Use the id that POST /v1/feedback answered; old feedback can be withdrawn no more."


class ThreadNotFound(NotFound):
    """There is no conversation of this name in this collection and tenant."""

    slug = "thread-not-found"
    hint = "Ask with a thread_id to begin one; conversations are forgotten after agent.keep_days."


class TableNotFound(NotFound):
    """A table that is, or is to be, attached is not there, or may not be read."""

    slug = "table-not-found"
    hint = "Name it as SCHEMA.TABLE, and let crate.user read it: GRANT DQL ON TABLE … TO …."


class Conflict(PermanentError):
    """The request contradicts what is stored."""

    slug = "conflict"
    status = 409


class CollectionExists(Conflict):
    """A collection of this name exists with other settings."""

    slug = "collection-exists"
    hint = "Use another name, or use the collection as it is."


class SourceExists(Conflict):
    """A source of this name exists with another address or other settings."""

    slug = "source-exists"
    hint = "Use another name, or remove the source first: `callslip source remove NAME`."


class DuplicateContent(Conflict):
    """The same bytes are stored already under another name."""

    slug = "duplicate-content"
    hint = "Nothing was stored. To keep both: --allow-duplicate, or allow_duplicate=true over HTTP."


class AttachedReadOnly(Conflict):
    """The collection is a table of somebody else, which Callslip only reads."""

    slug = "attached-read-only"
    hint = "Change the table itself; DELETE /v1/collections/NAME only detaches it."


class DocumentError(PermanentError):
    """This file cannot become chunks."""

    slug = "document-error"
    status = 422
    hint = "Correct the file and upload it again."


class EmptyFile(DocumentError):
    """The file has no bytes."""

    slug = "empty-file"
    hint = "Upload a file that has content."


class FileTooLarge(DocumentError):
    """The file is larger than this installation takes."""

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
    """The file is sound but holds no text."""

    slug = "no-text"
    hint = "There is nothing to search in it; leave it out."


class GarbageText(DocumentError):
    """The file has a text layer, but its characters mean nothing."""

    slug = "garbage-text"
    hint = "Its fonts do not say which letters they draw: run OCR over the pages instead."


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
        " sources.allow_networks, webhooks.allow_networks."
    )


class NothingListed(SourceError):
    """Everything that a source had seems gone, which is more likely a mistake than meant."""

    slug = "nothing-listed"
    hint = "Nothing was deleted. If it is meant: callslip source sync NAME --delete-missing --force"


class EvaluationError(PermanentError):
    """Retrieval cannot be measured on this judged set."""

    slug = "evaluation-error"
    hint = "Nothing was measured; correct the cause and start again."


class JudgedSetError(EvaluationError):
    """The files of a judged set are not in BEIR form."""

    slug = "judged-set-error"
    hint = (
        "A set is a folder with corpus.jsonl (_id, title, text), queries.jsonl (_id, text) and"
        " qrels.tsv or qrels/test.tsv (query, document, grade, separated by tabs)."
    )


class TuningError(PermanentError):
    """Weights cannot be fitted, or what was found is not applied; the collection is as it was."""

    slug = "tuning-error"
    hint = "Nothing was changed."


class TooFewQuestions(TuningError):
    """Weights that are fitted on so few questions would be those of chance."""

    slug = "too-few-questions"
    hint = (
        "Let more outcomes come in (POST /v1/feedback), or fit on a judged set with `--judged DIR`."
    )


class NotBetter(TuningError):
    """The held-out gain is not known to be above 0."""

    slug = "not-better"
    hint = "Nothing was changed; more questions make the interval narrower."


class GuardHolds(TuningError):
    """Without the bias of what was shown where, the proposal may be worse."""

    slug = "guard-holds"
    hint = "Nothing was changed; a judged set (`--judged DIR`) has no such bias."


class MoveError(PermanentError):
    """A collection cannot be moved; it stands where it stood."""

    slug = "move-error"


class ArchiveError(MoveError):
    """The file is no whole and sound archive of a collection."""

    slug = "archive-error"
    status = 422
    hint = "Nothing was imported. Export the collection again, or copy the file again."


class CopyDiffers(MoveError):
    """Both sides of a move do not hold the same."""

    slug = "copy-differs"
    hint = "The source was left as it is. Run the same command again: it copies what differs anew."


class BadReply(PermanentError):
    """A language model's reply is of no use; it cost `input_tokens` and `output_tokens` still.

    The detail says what is wrong with it: it is cut, a refusal, empty, too large, no JSON, of
    another shape or not of the protocol.
    """

    slug = "bad-reply"
    status = 502
    hint = "Nothing of it was used; another model or a larger llm.max_output_tokens may help."

    def __init__(
        self,
        detail: str,
        *,
        hint: str | None = None,
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> None:
        super().__init__(detail, hint=hint)
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens


class SettingsError(PermanentError):
    """A setting is wrong."""

    slug = "settings-error"
    status = 500
    hint = "`callslip config` prints what is in force and where it came from."


class StartError(PermanentError):
    """`callslip up` cannot start or go on."""

    slug = "start-error"
    status = 500


class DeskDown(TransientError):
    """The desk does not answer."""

    slug = "desk-down"
    hint = "Start it with `callslip up`, or set CALLSLIP_API__URL to where it runs."


class BrokerDown(TransientError):
    """The broker does not answer."""

    slug = "broker-down"


class StoreDown(TransientError):
    """A store, the ledger or the blob store does not answer."""

    slug = "store-down"


class StoreReadOnly(StoreDown):
    """The store answers but takes nothing, commonly because its disk is full."""

    slug = "store-read-only"
    hint = "Free space on the store's disk or lift its block; nothing is lost, writes are retried."


class StoreNotAllowed(StoreDown):
    """The store's user may not do this."""

    slug = "store-not-allowed"
    hint = "Grant the user of the store's settings what is named; nothing is lost meanwhile."


class BatchInterrupted(StoreDown):
    """The store was lost in the middle of a batch: `stored` was acknowledged, `unstored` was not.

    Writing the batch again finishes the job.
    """

    slug = "batch-interrupted"

    def __init__(
        self,
        detail: str,
        *,
        hint: str | None = None,
        stored: tuple[str, ...] = (),
        unstored: tuple[str, ...] = (),
    ) -> None:
        super().__init__(detail, hint=hint)
        self.stored = stored
        self.unstored = unstored


class EmbedderDown(TransientError):
    """The embedder does not answer."""

    slug = "embedder-down"


class LanguageModelDown(TransientError):
    """The language model does not answer."""

    slug = "language-model-down"


class RerankerDown(TransientError):
    """The reranker does not answer, not in time, or not what was asked."""

    slug = "reranker-down"
    hint = "Nothing is lost: hits stand in the order that fusion gave them."


class SourceDown(TransientError):
    """A source does not answer, or is being written at the moment."""

    slug = "source-down"
    hint = "Nothing is lost and nothing was deleted; the next sync tries it again."


class Overloaded(TransientError):
    """More is waiting than can be answered in time."""

    slug = "overloaded"
    hint = "Try again in a few seconds, or start another worker."


class BacklogFull(Overloaded):
    """So many documents wait already that no more are taken for now."""

    slug = "backlog-full"
    status = 429
    hint = "Send it again after Retry-After seconds; another ingest worker makes it shorter."
    retry_after = 10.0


class FeedbackLimit(Overloaded):
    """One user gave as much feedback as is taken within an hour."""

    slug = "feedback-limit"
    status = 429
    hint = "Send it again later; memory.feedback_per_hour in the settings is the limit."
    retry_after = 600.0


class ModelBudgetSpent(Overloaded):
    """The language model's tokens of today are used up, or what is left is too little.

    `retry_after` is how long it is until they are renewed, at midnight UTC.
    """

    slug = "model-budget-spent"
    status = 429
    hint = "It is renewed at midnight UTC; llm.tokens_per_day in the settings is the limit."

    def __init__(
        self, detail: str, *, hint: str | None = None, retry_after: float = 3600.0
    ) -> None:
        super().__init__(detail, hint=hint)
        self.retry_after = retry_after


class SearchTimeout(TransientError):
    """No answer came before the deadline."""

    slug = "search-timeout"
    status = 504


class AnswerTimeout(TransientError):
    """No answer of the agent came before the deadline."""

    slug = "answer-timeout"
    status = 504
    hint = "Ask again; if it repeats, raise agent.timeout_seconds, or lower llm.timeout_seconds."


class LeaseLost(TransientError):
    """Another worker holds this step now; this one's result is dropped."""

    slug = "lease-lost"


def _walk(cls: type[CallslipError]) -> dict[str, type[CallslipError]]:
    found = {cls.slug: cls}
    for child in cls.__subclasses__():
        found |= _walk(child)
    return found


BY_SLUG: dict[str, type[CallslipError]] = _walk(CallslipError)
"""The class of each slug: an error crosses a queue or the ledger as (slug, detail, advice)."""

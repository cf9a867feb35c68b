"""Errors of requests: invalid values, missing objects, conflicts with stored objects."""

from callslip.errors.base import PermanentError


class InvalidRequest(PermanentError):
    """A value of the request is wrong."""

    slug = "invalid-request"
    hint = "Correct the named value and send the request again."


class InvalidFilter(InvalidRequest):
    """`having_all` or `having_any` is malformed."""

    slug = "invalid-filter"
    hint = (
        "A key is `property` or `property OPERATOR`, the operator one of"
        " == != ~ > >= < <= !> !>= !< !<= @ contains in not-in."
    )


class EmptyQuery(InvalidRequest):
    """The query contains no text."""

    slug = "empty-query"
    hint = "Write at least one letter or digit."


class QueryTooLong(InvalidRequest):
    """The query is longer than search.max_query_chars."""

    slug = "query-too-long"
    hint = "Shorten the query, or raise search.max_query_chars in the settings."


class MetricNotIndexed(InvalidRequest):
    """The index has another metric, and too many vectors match for a comparison one by one."""

    slug = "metric-not-indexed"
    hint = "Leave `method` out, or narrow the search with a filter."


class StoreCannot(InvalidRequest):
    """The collection's store does not support the feature."""

    slug = "store-cannot"
    hint = "docs/filters.md says what each store can do; `callslip migrate` moves a collection."


class InvalidCorrection(InvalidRequest):
    """A correction would make a chunk empty, or longer than the embedder reads."""

    slug = "invalid-correction"
    hint = (
        "Send the whole text of the chunk, corrected; `callslip chunks list ID` or GET"
        " /v1/documents/ID/chunks has it."
    )


class KeyRefused(PermanentError):
    """The server requires a key, and the request has no key or a wrong one."""

    slug = "key-refused"
    status = 401
    hint = (
        "Send `Authorization: Bearer KEY` with a key of `callslip keys create`, or with the api.key"
        " of the server's settings; `callslip` and its MCP server take it from CALLSLIP_API__KEY."
    )


class PermissionMissing(PermanentError):
    """The caller is known, and its key or its groups do not permit the request."""

    slug = "permission-missing"
    status = 403
    hint = "Use a key that permits it: `callslip keys create --help` explains the permissions."


class NotFound(PermanentError):
    """An object that the request names does not exist."""

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
    hint = "Leave `vector_name` (`--vector` of a command) out for the default vector."


class ChunkNotFound(NotFound):
    """The live version of the document has no passage with this id."""

    slug = "chunk-not-found"
    hint = (
        "`callslip chunks list ID` or GET /v1/documents/ID/chunks lists them; a corrected passage"
        " has another id."
    )


class DocumentNotFound(NotFound):
    """No document has this id."""

    slug = "document-not-found"
    hint = (
        "`callslip status -c COLLECTION` or GET /v1/collections/NAME/documents lists the ids; a"
        " deleted document is gone."
    )


class PageNotFound(NotFound):
    """The document has no page of this number, or none that can be drawn."""

    slug = "page-not-found"
    hint = "Pages count from 1; only pages of a PDF are drawn."


class DocumentTableNotFound(NotFound):
    """The text of the document has no table of this number."""

    slug = "document-table-not-found"
    hint = "Tables count from 1; the count `tables` of the step `extract` has their number."


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


class ProposalNotFound(NotFound):
    """The collection has no proposal with this id."""

    slug = "proposal-not-found"
    hint = "GET /v1/collections/NAME/proposals lists them."


class KeyNotFound(NotFound):
    """No key has this name."""

    slug = "key-not-found"
    hint = "`callslip keys list` shows every key."


class ThreadNotFound(NotFound):
    """There is no conversation of this name in this collection and tenant."""

    slug = "thread-not-found"
    hint = (
        "A question with a thread_id begins one (`callslip ask QUESTION --thread NAME`);"
        " conversations are forgotten after agent.keep_days."
    )


class TableNotFound(NotFound):
    """A table or Chroma collection, attached or to attach, does not exist or is not readable."""

    slug = "table-not-found"
    hint = "Name it as SCHEMA.TABLE, and let crate.user read it: GRANT DQL ON TABLE … TO …."


class Conflict(PermanentError):
    """The request contradicts the stored state."""

    slug = "conflict"
    status = 409


class PreconditionFailed(PermanentError):
    """The document has changed since the state that `If-Match` names."""

    slug = "precondition-failed"
    status = 412
    hint = "Read the document again, and send the change with its new ETag."


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


class NameTaken(Conflict):
    """The name of a document belongs to one that the caller may not read."""

    slug = "name-taken"
    hint = "Send the document under another name."


class AttachedReadOnly(Conflict):
    """The collection is an attached table or Chroma collection, which Callslip only reads."""

    slug = "attached-read-only"
    hint = "Change it in its own program; DELETE /v1/collections/NAME only detaches it."

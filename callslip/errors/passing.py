"""Transient errors: a part of the system does not respond, and another try may succeed."""

from callslip.errors.base import TransientError


class ServerDown(TransientError):
    """The server does not answer."""

    slug = "server-down"
    hint = "Start it with `callslip up`, or set CALLSLIP_API__URL to where it runs."


class BrokerDown(TransientError):
    """The broker does not answer."""

    slug = "broker-down"


class StoreDown(TransientError):
    """A store, the ledger or the blob store does not answer."""

    slug = "store-down"


class KeywordsDown(StoreDown):
    """The keyword index beside Chroma, or its service, does not answer; Chroma may."""

    slug = "keywords-down"


class KeywordsLost(KeywordsDown):
    """Chroma has the collection, and its keyword index is gone."""

    slug = "keywords-lost"
    hint = "`callslip audit --repair` writes it again from the ledger."


class StoreReadOnly(StoreDown):
    """The store responds but refuses writes, commonly because its disk is full."""

    slug = "store-read-only"
    hint = "Free space on the store's disk or lift its block; nothing is lost, writes are retried."


class StoreNotAllowed(StoreDown):
    """The store's user lacks a privilege for the operation."""

    slug = "store-not-allowed"
    hint = "Grant the user of the store's settings what is named; nothing is lost meanwhile."


class StoreTooOld(StoreDown):
    """The store's server is older than the oldest supported version."""

    slug = "store-too-old"
    hint = "Update the server (docs/operations.md has the versions); nothing is lost meanwhile."


class BatchInterrupted(StoreDown):
    """The connection to the store broke in the middle of a batch.

    The store acknowledged the objects `stored`, and did not acknowledge `unstored`. Writing the
    whole batch again completes it.
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


class FileMissing(TransientError):
    """The blob store lacks a file of a document, and has others."""

    slug = "file-missing"
    hint = "Put the blob store's files back; if they are lost, send the document again."


class EmbedderDown(TransientError):
    """The embedder does not answer, or not with finite vectors."""

    slug = "embedder-down"


class LanguageModelDown(TransientError):
    """The language model does not answer."""

    slug = "language-model-down"


class RerankerDown(TransientError):
    """The reranker does not answer in time, or its response is malformed."""

    slug = "reranker-down"
    hint = "Nothing is lost: hits stand in the order that fusion gave them."


class LayoutServerDown(TransientError):
    """The layout server does not answer, or its response is malformed."""

    slug = "layout-server-down"
    hint = (
        "Nothing is lost: the document is tried again. Start the server, or unset layout.base_url"
        " to read without it."
    )


class SourceDown(TransientError):
    """A source does not answer, or another program is writing it."""

    slug = "source-down"
    hint = "Nothing is lost and nothing was deleted; the next sync tries it again."


class Overloaded(TransientError):
    """More requests wait than the server can answer in time."""

    slug = "overloaded"
    hint = "Try again in a few seconds, or start another worker."


class BacklogFull(Overloaded):
    """Too many documents wait for ingestion; the server accepts no more for now.

    `retry_after` is the time until some of them are ingested, in seconds.
    """

    slug = "backlog-full"
    status = 429
    hint = "Send it again after Retry-After seconds; another ingest worker makes it shorter."

    def __init__(self, detail: str, *, hint: str | None = None, retry_after: float = 10.0) -> None:
        super().__init__(detail, hint=hint)
        self.retry_after = retry_after


class DiskFull(Overloaded):
    """The disk of the data folder has too little room for another document."""

    slug = "disk-full"
    status = 507
    hint = (
        "Free space on the disk of data_dir; ingest.min_free_mb in the settings is the limit."
        " Searches go on, nothing is lost, and waiting documents continue by themselves."
    )
    retry_after = 30.0


class FeedbackLimit(Overloaded):
    """A user sent as much feedback as the server accepts within an hour."""

    slug = "feedback-limit"
    status = 429
    hint = "Send it again later; memory.feedback_per_hour in the settings is the limit."
    retry_after = 600.0


class ModelBudgetSpent(Overloaded):
    """The language model's tokens of today are used up, or the rest is too little for a call.

    `retry_after` is the time until midnight UTC, in seconds, when the budget is renewed.
    """

    slug = "model-budget-spent"
    status = 429
    hint = "It is renewed at midnight UTC; llm.tokens_per_day in the settings is the limit."

    def __init__(
        self, detail: str, *, hint: str | None = None, retry_after: float = 3600.0
    ) -> None:
        super().__init__(detail, hint=hint)
        self.retry_after = retry_after


class TooManyRequests(Overloaded):
    """A key's rate limit or quota is used up, or wrong keys came from the caller's address.

    `retry_after` is the time until the next request is accepted, in seconds.
    """

    slug = "too-many-requests"
    status = 429
    hint = "Send it again after Retry-After seconds; `callslip keys list` shows a key's limits."

    def __init__(self, detail: str, *, hint: str | None = None, retry_after: float = 60.0) -> None:
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


class WorkTimeout(TransientError):
    """No worker has done the work of a request before the deadline."""

    slug = "work-timeout"
    status = 504
    hint = "Send the request again with less at once, or start another ingest worker."


class LeaseLost(TransientError):
    """Another worker has the lease of this step; the result of this worker is dropped."""

    slug = "lease-lost"

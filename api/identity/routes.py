"""The permission that each endpoint needs, and how it respects the limits of a caller.

An endpoint that is not in the table, such as one of another package's adapter, needs the permission
`admin` and a caller without limits.
"""

from dataclasses import dataclass
from typing import Literal

from callslip.callers import Permission

Limits = Literal["arguments", "endpoint", "refuses", "none"]
"""How an endpoint respects a caller's collections and tenants: `api/identity/scopes.py` checks the
arguments of the path; the endpoint itself checks; it refuses a limited caller; it shows nothing of
any collection."""


@dataclass(frozen=True)
class Route:
    """The permission of an endpoint (None: any caller), and how it respects limits."""

    permission: Permission | None
    limits: Limits


PUBLIC = frozenset(
    {"health.healthz", "health.readyz", "static", "login.login", "login.begin", "login.finish"}
)
"""Endpoints that need no key: probes, the page's style and scripts, and the login."""

NOT_LISTED = Route("admin", "refuses")

ROUTES: dict[str, Route] = {
    "openapi": Route(None, "none"),
    "login.logout": Route(None, "none"),
    "metrics.metrics": Route("read", "refuses"),
    # collections
    "collections.create_collection": Route("write", "endpoint"),
    "collections.list_collections": Route("read", "endpoint"),
    "collections.set_options": Route("admin", "endpoint"),
    "collections.delete_collection": Route("admin", "endpoint"),
    "collections.list_receipts": Route("read", "endpoint"),
    "collections.create_tenant": Route("write", "endpoint"),
    "collections.list_tenants": Route("read", "endpoint"),
    "collections.delete_tenant": Route("admin", "endpoint"),
    "attachments.attach_table": Route("admin", "endpoint"),
    # documents
    "documents.submit_document": Route("write", "endpoint"),
    "documents.list_unchanged": Route("write", "endpoint"),
    "documents.list_documents": Route("read", "endpoint"),
    "documents.get_document": Route("read", "arguments"),
    "documents.get_text": Route("read", "arguments"),
    "files.get_file": Route("read", "arguments"),
    "files.get_page": Route("read", "arguments"),
    "files.get_table": Route("read", "arguments"),
    "documents.change_document": Route("write", "arguments"),
    "documents.delete_document": Route("write", "arguments"),
    "versions.list_versions": Route("read", "arguments"),
    "versions.roll_back": Route("write", "arguments"),
    "chunks.list_chunks": Route("read", "arguments"),
    "chunks.list_corrections": Route("read", "arguments"),
    "chunks.correct_chunks": Route("write", "arguments"),
    "previews.preview_chunks": Route("write", "endpoint"),
    "versions.preview_cut": Route("read", "arguments"),
    "versions.cut": Route("write", "arguments"),
    "events.get_events": Route("read", "arguments"),
    "tasks.get_task": Route("read", "arguments"),
    "batches.create_batch": Route("write", "endpoint"),
    "batches.get_batch": Route("read", "endpoint"),
    "batches.list_batch_documents": Route("read", "endpoint"),
    "failures.list_dead_letters": Route("read", "endpoint"),
    "failures.retry": Route("write", "endpoint"),
    # webhooks
    "webhooks.create_webhook": Route("admin", "endpoint"),
    "webhooks.list_webhooks": Route("admin", "endpoint"),
    "webhooks.get_webhook": Route("admin", "arguments"),
    "webhooks.delete_webhook": Route("admin", "arguments"),
    "webhooks.list_deliveries": Route("admin", "arguments"),
    "webhooks.retry_delivery": Route("admin", "arguments"),
    # searches and answers
    "searches.search": Route("read", "endpoint"),
    "answers.answer_question": Route("read", "endpoint"),
    "answers.get_conversation": Route("read", "endpoint"),
    "answers.delete_conversation": Route("write", "endpoint"),
    "recorded_answers.get_answer": Route("read", "arguments"),
    "feedback.get_trace": Route("read", "arguments"),
    "feedback.give_feedback": Route("feedback", "endpoint"),
    "feedback.withdraw_feedback": Route("feedback", "arguments"),
    # ranking
    "facets.list_facets": Route("read", "endpoint"),
    "facets.propose_facets": Route("read", "endpoint"),
    "facets.count_by_property": Route("read", "endpoint"),
    "facets.rebuild_facets": Route("admin", "endpoint"),
    "memory.show_memory": Route("read", "endpoint"),
    "memory.export_memory": Route("read", "endpoint"),
    "memory.import_memory": Route("admin", "endpoint"),
    "memory.reset_memory": Route("admin", "endpoint"),
    "ranking.show_ranking": Route("read", "endpoint"),
    "ranking.list_examples": Route("read", "endpoint"),
    "ranking.list_proposals": Route("admin", "endpoint"),
    "ranking.decide_proposal": Route("admin", "endpoint"),
    "usage.show_usage": Route("read", "endpoint"),
    # the page
    "pages.page": Route("read", "endpoint"),
    "pages.document_list": Route("read", "endpoint"),
    "pages.answer_live": Route("read", "endpoint"),
    "pages.passage": Route("read", "endpoint"),
    "chunk_pages.chunk_list": Route("read", "endpoint"),
    "chunk_pages.correct_chunk": Route("write", "endpoint"),
    "editing.show_document": Route("read", "endpoint"),
    "editing.save_document": Route("write", "endpoint"),
    "editing.restore_version": Route("write", "endpoint"),
    "proposals.page": Route("admin", "endpoint"),
    "proposals.decide_on_page": Route("admin", "endpoint"),
    "comparing.page": Route("read", "endpoint"),
    # adapters
    "faq.write_rows": Route("write", "endpoint"),
    "faq.list_rows": Route("read", "endpoint"),
    "faq.remove_rows": Route("write", "endpoint"),
    "faq.compare_collections": Route("read", "endpoint"),
    "invokers.invoke": Route(None, "endpoint"),  # by the invoker: api/adapters/invokers.py
    "annotator.upload_file": Route("write", "refuses"),
    "annotator.download_file": Route("read", "refuses"),
    "annotator.vectorize_documents": Route("write", "refuses"),
    "annotator.return_candidates": Route("read", "refuses"),
    "annotator.process_and_upload_doc": Route("write", "refuses"),
}


def route_of(endpoint: str) -> Route:
    """The route of an endpoint."""
    return ROUTES.get(endpoint, NOT_LISTED)

"""Checks the ids in a request's path: what a caller may not see answers as if it did not exist.

Each error has the words of the error for an id that does not exist.
"""

import re
from collections.abc import Callable, Collection, Mapping

from callslip.callers import Caller
from callslip.errors import (
    CollectionNotFound,
    DocumentNotFound,
    FeedbackNotFound,
    TaskNotFound,
    WebhookNotFound,
)
from callslip.stores.ledger import Ledger

Scope = tuple[str, str]
"""A collection and a tenant."""

_TASK = re.compile(r"(?:ingest|delete)-(?P<document>[0-9a-f]{32})(?:-[0-9]{1,9})?")

COLLECTION_RULE = "/v1/collections/<string:name>"
"""The start of the rules whose `name` is a collection."""

RECEIPTS_RULE = f"{COLLECTION_RULE}/receipts"
"""The rule whose `name` may be a collection that was deleted."""


def check_arguments(
    caller: Caller, ledger: Ledger, rule: str, arguments: Mapping[str, str]
) -> None:
    """Raise the error of a missing id unless the caller may see what the ids in the path name.

    Except for traces, which may be on their way: their routes wait for them and check them. The
    routes of batches and receipts check their names themselves.
    """
    if rule.startswith(COLLECTION_RULE) and rule != RECEIPTS_RULE:
        check_collection(caller, ledger, arguments["name"])
    for argument, scopes_of in _SCOPES.items():
        if argument in arguments:
            value = arguments[argument]
            scopes = scopes_of(ledger, value)
            if not scopes or not caller.sees_all(scopes):  # before an invalid request is refused
                raise _missing(argument, value)
    if "webhook_id" in arguments:
        hook = ledger.webhooks.get(arguments["webhook_id"])
        if not sees_webhook(caller, hook.collection):
            raise WebhookNotFound(f"webhook {hook.webhook_id!r} does not exist")


def check_collection(caller: Caller, ledger: Ledger, name: str) -> None:
    """Raise the error of a missing collection unless the caller may see it or one tenant of it."""
    if caller.sees(name, ""):
        return
    tenants = ledger.collections.get(name).schema.tenants
    if not caller.sees_collection(name, tenants=tenants):
        raise CollectionNotFound(f"collection {name!r} does not exist")


def sees_webhook(caller: Caller, collection: str | None) -> bool:
    """Whether a caller may see the webhook of a collection; None: of every collection.

    A webhook receives the events of all tenants.
    """
    if not caller.limited:
        return True
    return collection is not None and caller.tenants is None and caller.sees(collection, "")


def _document(ledger: Ledger, document_id: str) -> Collection[Scope]:
    return ledger.documents.scopes([document_id])


def _task(ledger: Ledger, task_id: str) -> Collection[Scope]:
    parts = _TASK.fullmatch(task_id)
    return ledger.documents.scopes([parts["document"]]) if parts else ()


def _feedback(ledger: Ledger, feedback_id: str) -> Collection[Scope]:
    return ledger.outcomes.scopes(feedback_id)


_SCOPES: dict[str, Callable[[Ledger, str], Collection[Scope]]] = {
    "document_id": _document,
    "task_id": _task,
    "feedback_id": _feedback,
}


def _missing(argument: str, value: str) -> Exception:
    match argument:
        case "document_id":
            return DocumentNotFound(f"document {value!r} does not exist")
        case "task_id":
            return TaskNotFound(f"task {value!r} does not exist")
        case _:
            return FeedbackNotFound(f"feedback {value!r} does not exist")

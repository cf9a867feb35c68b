"""The names of batches, which callers with the same collections and tenants share.

A batch of a limited caller has another id in the ledger than its name: so nobody takes a name from
callers with other limits, or learns that they use it.
"""

import hashlib
import json
import uuid
from dataclasses import replace

from callslip.api.http.context import current
from callslip.api.identity.current import caller
from callslip.callers import Caller
from callslip.errors import BatchNotFound, InvalidRequest
from callslip.stores.ledger import BatchReport
from callslip.vocabulary import LONGEST_NAME

MARK = "@"
"""Between the name of a batch and the mark of its callers' limits; no name contains it."""

MARK_LENGTH = 10


def named(name: str) -> str:
    """Return the id of the caller's batch of this name; "" without a name.

    Raises InvalidRequest for a name that leaves no room for the mark.
    """
    if not name:
        return ""
    batch_id = name + _mark(caller())
    if len(batch_id) > LONGEST_NAME:
        most = LONGEST_NAME - len(_mark(caller()))
        raise InvalidRequest(
            f"the name of the batch has more than {most} characters",
            hint=f"A key that is limited to collections or tenants names batches with {most}.",
        )
    return batch_id


def new_name() -> str:
    """Return a name that no batch has."""
    return f"batch-{uuid.uuid4().hex[:12]}"


def report(name: str) -> BatchReport:
    """Return the progress of the caller's batch of this name, with its id in the ledger.

    Without such a batch, a limited caller sees one of other callers if it sees each document.
    Raises BatchNotFound, which names the batch as the caller does.
    """
    batches, limits = current().ledger.batches, caller()
    batch_id = name + _mark(limits)
    if limits.limited and not batches.exists(batch_id):
        scopes = batches.scopes(name)
        batch_id = name if scopes and limits.sees_all(scopes) else ""
    try:
        return batches.report(batch_id)
    except BatchNotFound:
        raise BatchNotFound(f"batch {name!r} does not exist") from None


def shown(progress: BatchReport) -> BatchReport:
    """Return the progress with the name by which the caller calls the batch."""
    return replace(progress, batch_id=progress.batch_id.removesuffix(_mark(caller())))


def _mark(limits: Caller) -> str:
    """The end of the ids of a limited caller's batches; "" for a caller without limits."""
    if not limits.limited:
        return ""
    both = (limits.collections, limits.tenants)
    own = [sorted(some) if some is not None else None for some in both]
    digest = hashlib.blake2b(json.dumps(own).encode(), digest_size=MARK_LENGTH // 2)
    return f"{MARK}{digest.hexdigest()}"

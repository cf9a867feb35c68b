"""The names of batches, which callers with the same collections and tenants share.

A batch that a limited caller names has another id in the ledger than its name: so nobody takes a
name from callers with other limits, or learns that they use it. A random name, which nobody else
has, is an id for every caller that sees the documents.
"""

import hashlib
import json
import re
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

_RANDOM = re.compile("batch-[0-9a-f]{12}|[0-9a-f]{32}")
"""Names of batches that the server or the client library made."""


def named(name: str) -> str:
    """Return the id of the caller's batch of this name; "" without a name.

    Raises InvalidRequest for a name that leaves no room for the mark, and BatchNotFound if the
    caller sees not each document of a batch with a random name.
    """
    limits = caller()
    if not name or not limits.limited:
        return name
    if _RANDOM.fullmatch(name):
        _check(name, limits)
        return name
    mark = _mark(limits)
    if len(name + mark) > LONGEST_NAME:
        most = LONGEST_NAME - len(mark)
        raise InvalidRequest(
            f"the name of the batch has more than {most} characters",
            hint=f"A key that is limited to collections or tenants names batches with {most}.",
        )
    return name + mark


def create(name: str, expected: int | None) -> str:
    """Make the caller's batch of this name, or set its number of documents; return its name.

    Without a name the ledger makes a random one. Raises what `named` does, and BatchNotFound if
    the batch has documents, of which the caller may read none.
    """
    try:
        batch_id = current().ledger.batches.create(named(name) or None, expected)
    except BatchNotFound:
        raise _missing(name) from None
    return name or batch_id


def report(name: str) -> BatchReport:
    """Return the progress of the caller's batch of this name, with its id in the ledger.

    Without such a batch, a limited caller sees one of other callers if it sees each document, and
    a caller without limits the only one of this name of limited callers. Raises BatchNotFound,
    which names the batch as the caller does.
    """
    batches, limits = current().ledger.batches, caller()
    batch_id = name + _mark(limits)
    try:
        if not batches.exists(batch_id):
            batch_id = name
            if limits.limited:
                _check(name, limits, empty=_RANDOM.fullmatch(name) is not None)
            elif len(marked := batches.starting(f"{name}{MARK}")) == 1:
                batch_id = marked[0]
        return batches.report(batch_id)
    except BatchNotFound:
        raise _missing(name) from None


def _check(batch_id: str, limits: Caller, *, empty: bool = True) -> None:
    """Raise BatchNotFound unless the caller sees each document; of one without any if `empty`."""
    scopes = current().ledger.batches.scopes(batch_id)
    if not limits.sees_all(scopes) or not (scopes or empty):
        raise _missing(batch_id)


def _missing(name: str) -> BatchNotFound:
    return BatchNotFound(f"batch {name!r} does not exist")


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

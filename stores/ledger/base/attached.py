"""Refuses writes to attached collections, whose tables Callslip does not own."""

from sqlalchemy import Connection, bindparam, select

from callslip.errors import AttachedReadOnly
from callslip.stores.ledger.base import schema
from callslip.stores.ledger.base.records import ATTACHED_KINDS

_C = schema.collections.c

_ATTACHED = select(_C.name).where(_C.name == bindparam("of"), _C.store.in_(ATTACHED_KINDS))


def check_ours(connection: Connection, name: str) -> None:
    """Raise AttachedReadOnly if the collection is an attached table."""
    if connection.scalar(_ATTACHED, {"of": name}) is not None:
        raise read_only(name)


def read_only(name: str) -> AttachedReadOnly:
    """The error of an operation that would write to an attached collection."""
    return AttachedReadOnly(f"collection {name!r} is attached, and only read")

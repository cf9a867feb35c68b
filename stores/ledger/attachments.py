"""Collections that are tables of somebody else: what writes must ask before it does."""

from sqlalchemy import Connection, select

from callslip.errors import AttachedReadOnly
from stores.ledger import schema
from stores.ledger.records import ATTACHED

_C = schema.collections.c


def check_ours(connection: Connection, name: str) -> None:
    """Raise AttachedReadOnly where the collection is a table of somebody else."""
    attached = select(_C.name).where(_C.name == name, _C.store == ATTACHED)
    if connection.scalar(attached) is not None:
        raise read_only(name)


def read_only(name: str) -> AttachedReadOnly:
    """The error for whatever would write to an attached collection."""
    return AttachedReadOnly(f"collection {name!r} is an attached table, which is only read")

"""Attaching a CrateDB table that another program made, as a collection."""

from callslip.compat.crate.names import table_named
from callslip.errors import CollectionNotFound, InvalidRequest
from callslip.models.embedders.contract import Embedder
from callslip.stores.crate.attached import Sound, inspect
from callslip.stores.crate.connection import Connection
from callslip.stores.ledger import ATTACHED, Attachment, CollectionRecord, Ledger
from callslip.stores.ledger.base.records import Vectors
from callslip.stores.records import CollectionSchema, VectorSpec

UNKNOWN = "unknown"
"""The recorded embedder and analyzer of a table whose maker did not state them."""


def attach(
    name: str,
    table: str,
    vectors: Vectors,
    *,
    ledger: Ledger,
    connection: Connection,
    embedder: Embedder,
) -> tuple[CollectionRecord, bool]:
    """Attach a table as a read-only collection; return the collection and whether it is new.

    `vectors` is `ours` if `embedder` made the table's vectors. A repeated call returns the existing
    collection. Raises InvalidRequest if the table does not follow the specification, or if its
    vectors cannot be of this embedder; TableNotFound; CollectionExists.
    """
    attachment = Attachment(*table_named(table), vectors)
    try:
        known = ledger.collections.get(name)
        if known.attachment == attachment:
            return known, False
    except CollectionNotFound:
        pass
    sound = inspect(connection, attachment)
    if vectors == "ours":
        _check_ours(sound, embedder)
    spec = VectorSpec(
        sound.dimension, "cosine" if vectors == "ours" else sound.metric, vectors == "ours"
    )
    return ledger.collections.create(
        CollectionSchema(name, spec),
        store=ATTACHED,
        embedder=embedder.model if vectors == "ours" else UNKNOWN,
        analyzer=UNKNOWN,
        attachment=attachment,
    )


def _check_ours(sound: Sound, embedder: Embedder) -> None:
    """Raise InvalidRequest if this embedder cannot have made the vectors."""
    hint = "Leave `vectors` out: then words are searched, and vectors that a request gives."
    if embedder.lexical_only:
        raise InvalidRequest("this installation has no embedder", hint=hint)
    if sound.dimension != embedder.dimension:
        raise InvalidRequest(
            f"the table's vectors have {sound.dimension} dimensions,"
            f" those of {embedder.model} {embedder.dimension}",
            hint=hint,
        )
    if sound.unit is False:
        raise InvalidRequest(
            f"the table's vectors have not the length 1, those of {embedder.model} have", hint=hint
        )

"""Making a collection of a table that somebody else made."""

from callslip.errors import CollectionNotFound, InvalidRequest
from compat.crate.names import table_named
from models.embedder import Embedder
from stores.crate.attached import Sound, inspect
from stores.crate.connection import Connection
from stores.ledger import ATTACHED, Attachment, CollectionRecord, Ledger
from stores.ledger.records import Vectors
from stores.records import CollectionSchema, VectorSpec

UNKNOWN = "unknown"
"""The embedder, and the analyzer, of a table whose maker did not say."""


def attach(
    name: str,
    table: str,
    vectors: Vectors,
    *,
    ledger: Ledger,
    connection: Connection,
    embedder: Embedder,
) -> tuple[CollectionRecord, bool]:
    """Make a collection of a table, which is only read; the second value says whether it is new.

    The same call again gives the collection as it is. InvalidRequest for a table that does not
    follow the specification, or whose vectors cannot be ours; TableNotFound; CollectionExists.
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
    """InvalidRequest where the vectors cannot be the embedder's; that they are, nobody can see."""
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

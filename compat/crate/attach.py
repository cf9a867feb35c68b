"""Attaching a CrateDB table that another program made, as a collection."""

from callslip.compat.attaching import UNKNOWN, Embedders, check_vectors, known
from callslip.compat.crate.names import table_named
from callslip.stores.crate.attached import inspect
from callslip.stores.crate.connection import Connection
from callslip.stores.ledger import ATTACHED, Attachment, CollectionRecord, Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.vocabulary import Vectors

HINT = "Leave `vectors` out: then words are searched, and vectors that a request gives."


def attach(
    name: str,
    table: str,
    vectors: Vectors,
    *,
    ledger: Ledger,
    connection: Connection,
    embedders: Embedders,
) -> tuple[CollectionRecord, bool]:
    """Attach a table as a read-only collection; return the collection and whether it is new.

    `vectors` says which embedder made the table's vectors. A repeated call returns the existing
    collection. Raises InvalidRequest if the table does not follow the specification, or if its
    vectors cannot be of this embedder; TableNotFound; CollectionExists.
    """
    attachment = Attachment(*table_named(table), vectors)
    record = known(ledger, name)
    if record is not None and record.attachment == attachment:
        return record, False
    sound = inspect(connection, attachment)
    embedder = embedders.named(vectors, HINT)
    if embedder is not None:
        check_vectors("table", sound.dimension, sound.unit, embedder, HINT)
    metric = sound.metric if embedder is None else "cosine"
    return ledger.collections.create(
        CollectionSchema(name, VectorSpec(sound.dimension, metric, embedder is not None)),
        store=ATTACHED,
        embedder=UNKNOWN if embedder is None else embedder.model,
        analyzer=UNKNOWN,
        attachment=attachment,
    )

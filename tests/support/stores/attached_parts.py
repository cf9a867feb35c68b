"""What the tests of attached tables and of attached Chroma collections share."""

from collections.abc import Callable

import pytest
from store_cases import chunk

from callslip.errors import AttachedReadOnly
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger, Submission


def assert_read_only(store: Store, ledger: Ledger, collection: str) -> None:
    """The store and the ledger refuse every write to the collection."""
    writes: list[Callable[[], object]] = [
        lambda: store.batch_upsert_chunks(collection, [chunk("a")]),
        lambda: store.batch_upsert_documents(collection, []),
        lambda: store.delete_chunks(collection, ["a"]),
        lambda: store.delete_documents(collection, ["a"]),
        lambda: ledger.documents.submit(collection, Submission("n", "n", "n", "0", 1, {}), "id"),
        lambda: ledger.sources.add(collection, "s", "http://example.com"),
        lambda: ledger.moves.take(collection, "chroma", lease_seconds=1),
    ]
    for write in writes:
        with pytest.raises(AttachedReadOnly, match=collection):
            write()

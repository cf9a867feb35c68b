"""Which documents an import leaves out because they were purged here."""

import json

from callslip.stores.blobs import PURGES, Blobs


def purged_ids(blobs: Blobs) -> frozenset[str]:
    """The ids of all documents that a receipt of a purge names."""
    receipts = (json.loads(blobs.read(PURGES, name)) for name in blobs.names(PURGES))
    return frozenset(i for receipt in receipts for i in receipt["document_ids"])

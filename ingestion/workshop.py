"""What one process needs to work on documents: its clients, models and settings."""

from collections.abc import Callable
from dataclasses import dataclass

from config.settings import Settings
from ingestion.enrich import Confirmer, Recognizer
from ingestion.isolation import Extractor
from models.analyzer import Analyzer
from models.embedder import Embedder
from models.tokens import Tokenizer
from stores.blobs import Blobs
from stores.contract import Store
from stores.ledger import Ledger


@dataclass(frozen=True)
class Workshop:
    """Made once per process, after the fork. `store_of` gives the store of a kind.

    `confirmer` is None where no language model is set up.
    """

    settings: Settings
    ledger: Ledger
    blobs: Blobs
    store_of: Callable[[str], Store]
    embedder: Embedder
    tokenizer: Tokenizer
    analyzer: Analyzer
    extractor: Extractor
    recognizer: Recognizer
    confirmer: Confirmer | None = None

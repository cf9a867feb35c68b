"""The context of the ingestion steps: the backend, the models and the extraction process."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from callslip.ingestion.enrich import Confirmer, Recognizer
from callslip.ingestion.isolation.process import Extractor
from callslip.ingestion.layout_server import LayoutServer
from callslip.models.e5.tokens import Tokenizer
from callslip.models.embedders.choice import embedder_of
from callslip.models.embedders.contract import Embedder
from callslip.models.text.analyzer import Analyzer
from callslip.stores.backend import Backend, OnBackend
from callslip.stores.ledger import CollectionRecord


@dataclass(frozen=True)
class StepContext(OnBackend):
    """The resources of the ingestion steps; each process creates one instance after the fork.

    `confirmer` is None if no language model is configured, `previous` if no collection has another
    embedder, `layout_server` if no file is sent to one. `further` are the embedders of named
    vectors by their name in the settings.
    """

    backend: Backend
    embedder: Embedder
    tokenizer: Tokenizer
    analyzer: Analyzer
    extractor: Extractor
    recognizer: Recognizer
    confirmer: Confirmer | None = None
    previous: Embedder | None = None
    layout_server: LayoutServer | None = None
    further: Mapping[str, Embedder] = field(default_factory=dict)

    def embedder_of(self, collection: CollectionRecord) -> Embedder:
        """The embedder of a collection's default vector."""
        return embedder_of(collection.embedder, self.embedder, self.previous)

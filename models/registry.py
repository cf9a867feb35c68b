"""What the settings name, made. The one place that knows every kind."""

from typing import TYPE_CHECKING

from config.settings import Settings
from models.analyzer import Analyzer
from models.embedder import Embedder
from models.entities import Recognizer
from models.lexical import LexicalEmbedder
from models.tokens import Tokenizer

if TYPE_CHECKING:
    from models.language_model import LanguageModel
    from models.maxsim import TokenCache
    from models.reranker import Reranker
    from models.telemetry import Spans


def make_embedder(settings: Settings) -> Embedder:
    """The embedder of `embedder.kind`. It loads, or connects, when first used."""
    chosen = settings.embedder
    if chosen.kind == "none":
        return LexicalEmbedder()
    if chosen.kind == "openai":
        from models.openai_embedder import OpenAIEmbedder  # each takes a second to import

        return OpenAIEmbedder(chosen, make_tokenizer(settings))
    from models.e5 import E5Embedder

    tokenizer = make_tokenizer(settings)
    return E5Embedder(settings.models_dir, tokenizer, threads=settings.embedder_threads)


def make_tokenizer(settings: Settings) -> Tokenizer:
    """The tokenizer that chunks are measured in, whatever the embedder."""
    return Tokenizer(settings.models_dir)


def make_analyzer() -> Analyzer:
    """The analyzer of every keyword index and keyword query."""
    return Analyzer()


def make_recognizer() -> Recognizer:
    """What finds names in text. Its models load when first used."""
    return Recognizer()


def make_confirmer(settings: Settings) -> "LanguageModel | None":
    """The language model of `llm`; None where none is set up. It connects when first used."""
    if settings.llm.base_url is None:
        return None
    from models.language_model import LanguageModel

    return LanguageModel(settings.llm)


def make_spans(settings: Settings) -> "Spans | None":
    """What makes spans for the collector of `telemetry`; None where none is set up."""
    if settings.telemetry.otlp_endpoint is None:
        return None
    from models.telemetry import Spans

    return Spans(settings.telemetry)


def make_reranker(
    settings: Settings, embedder: Embedder, cache: "TokenCache | None" = None
) -> "Reranker | None":
    """The reranker of `rerank.provider`; None for none. It loads, or connects, when first used.

    maxsim runs the network of `embedder` where that is the local one, and keeps what it reads in
    `cache` (`Ledger.token_vectors`), or nothing without one. Raises SettingsError where what is
    set cannot work.
    """
    chosen = settings.rerank
    if chosen.provider == "onnx":
        from models.cross_encoder import CrossEncoder

        return CrossEncoder(chosen, threads=settings.embedder_threads)
    if chosen.provider == "api":
        from models.rerank_api import RerankApi

        return RerankApi(chosen)
    if chosen.provider == "maxsim":
        from models.e5 import E5Embedder
        from models.maxsim import MaxSimReranker

        if not isinstance(embedder, E5Embedder):
            embedder = E5Embedder(
                settings.models_dir, make_tokenizer(settings), threads=settings.embedder_threads
            )
        return MaxSimReranker(embedder, cache)
    return None

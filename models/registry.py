"""Makes the models that the settings name. Only this module knows every kind of model."""

from typing import TYPE_CHECKING

from callslip.config.settings import Settings
from callslip.languages import DEFAULT, Codes
from callslip.models.e5.tokens import Tokenizer
from callslip.models.embedders.contract import Embedder
from callslip.models.embedders.none import LexicalEmbedder
from callslip.models.entities import Recognizer
from callslip.models.text.analyzer import Analyzer

if TYPE_CHECKING:
    from callslip.models.language_models.client import LanguageModel
    from callslip.models.reader.contract import Reads
    from callslip.models.rerankers.contract import Reranker
    from callslip.models.rerankers.late_interaction import TokenCache
    from callslip.models.telemetry import Spans


def make_embedder(settings: Settings) -> Embedder:
    """Make the embedder of `embedder.kind`, which loads or connects when first used."""
    chosen = settings.embedder
    if chosen.kind == "none":
        return LexicalEmbedder()
    if chosen.kind == "openai":
        from callslip.models.embedders.openai import OpenAIEmbedder  # each takes a second to import

        return OpenAIEmbedder(chosen, make_tokenizer(settings))
    from callslip.models.embedders.local import E5Embedder

    return E5Embedder(
        settings.models_dir,
        make_tokenizer(settings),
        threads=settings.embedder_threads,
        at_once=settings.inferences_at_once,
        device=chosen.device,
    )


def make_previous_embedder(settings: Settings) -> Embedder | None:
    """Make the embedder of `previous_embedder`; None without one."""
    previous = settings.previous_embedder
    if previous.kind == "none":
        return None
    return make_embedder(settings.model_copy(update={"embedder": previous}))


def make_further_embedders(settings: Settings, present: Embedder) -> dict[str, Embedder]:
    """Make the embedders of `embedders` by name, which load or connect when first used.

    If both are the local model, the present embedder is used, which loads it once.
    """
    made: dict[str, Embedder] = {}
    for name, chosen in settings.embedders.items():
        if chosen.kind == settings.embedder.kind == "e5":
            made[name] = present
        elif chosen.kind == "e5":
            local = settings.embedder.model_copy(update={"kind": "e5"})
            made[name] = make_embedder(settings.model_copy(update={"embedder": local}))
        else:
            from callslip.models.embedders.openai import OpenAIEmbedder

            made[name] = OpenAIEmbedder(chosen, make_tokenizer(settings), f"embedders.{name}")
    return made


def make_tokenizer(settings: Settings) -> Tokenizer:
    """Make the tokenizer that measures chunks, which is the same for every embedder."""
    return Tokenizer(settings.models_dir)


def make_analyzer(codes: Codes = DEFAULT) -> Analyzer:
    """Make the analyzer of keyword indexes and queries, for the languages with these codes."""
    return Analyzer(codes)


def make_recognizer(codes: Codes = DEFAULT) -> Recognizer:
    """Make the recognizer of entities for these languages, whose models load when first used."""
    return Recognizer(codes)


def make_confirmer(settings: Settings) -> "LanguageModel | None":
    """Make the client of the settings' `llm`, which connects when first used.

    Returns None if no language model is set up.
    """
    if settings.llm.base_url is None:
        return None
    from callslip.models.language_models.client import LanguageModel

    return LanguageModel(settings.llm)


def make_spans(settings: Settings) -> "Spans | None":
    """Make the source of spans for the collector of `telemetry`; None without a collector."""
    if settings.telemetry.otlp_endpoint is None:
        return None
    from callslip.models.telemetry import Spans

    return Spans(settings.telemetry)


def make_reader(settings: Settings) -> "Reads | None":
    """Make the reader of `agent.reader`, which loads when first used; None without it."""
    if not settings.agent.reader or settings.embedder.kind == "none":
        return None
    from callslip.models.reader.reader import Reader

    return Reader(
        settings.models_dir,
        make_tokenizer(settings),
        threads=settings.embedder_threads,
        at_once=settings.inferences_at_once,
        device=settings.embedder.device,
    )


def make_reranker(
    settings: Settings, embedder: Embedder, cache: "TokenCache | None" = None
) -> "Reranker | None":
    """Make the reranker of `rerank.provider`, which loads or connects when first used.

    Returns None if the settings name no reranker. maxsim uses the network of `embedder` if that is
    the local embedder, and stores token vectors in `cache` (`Ledger.token_vectors`) if there is
    one. Raises SettingsError for settings that cannot work.
    """
    chosen = settings.rerank
    if chosen.provider == "onnx":
        from callslip.models.rerankers.cross_encoder import CrossEncoder

        return CrossEncoder(chosen, threads=settings.embedder_threads)
    if chosen.provider == "api":
        from callslip.models.rerankers.api import RerankApi

        return RerankApi(chosen)
    if chosen.provider == "maxsim":
        from callslip.models.embedders.local import E5Embedder
        from callslip.models.rerankers.late_interaction import MaxSimReranker

        if not isinstance(embedder, E5Embedder):
            embedder = E5Embedder(
                settings.models_dir,
                make_tokenizer(settings),
                threads=settings.embedder_threads,
                at_once=settings.inferences_at_once,
                device=settings.embedder.device,
            )
        return MaxSimReranker(embedder, cache)
    return None

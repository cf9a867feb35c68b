"""Documents per second of the whole chain and of the embedder alone, on the same chunks."""

import multiprocessing
import os
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from benchmarks.fresh_texts import FreshTexts
from benchmarks.private_stack import PrivateStack
from benchmarks.speed.ingestion import Ingestion
from benchmarks.speed.processor import seconds_by_role, spent
from callslip.config.settings import Settings
from callslip.errors import EvaluationError
from callslip.evals.client import JsonClient
from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import ExtractedText
from callslip.models.e5.runtimes.background import BACKGROUND
from callslip.models.e5.tokens import Tokenizer
from callslip.models.embedders.contract import Embedder
from callslip.models.registry import make_embedder
from callslip.workers.supervision.plan import BACKGROUND_NICENESS

BATCH = 4
"""Chunks that an embedding process gets at a time.

The embedder processes this many at once (`models.embedders.local`), and the number is so small that
all processes end together.
"""

WARM_UP = 8
"""The number of documents that are ingested and embedded before a measurement."""


@dataclass(frozen=True)
class Kind:
    """Documents of one length."""

    name: str
    tokens: int


@dataclass
class Throughput:
    """The measurements of one kind; each list has an entry for each round."""

    kind: Kind
    documents: int
    chunks_per_document: float = 0.0
    tokens_per_chunk: float = 0.0
    chain: list[float] = field(default_factory=list)
    """Documents per second from the first submission until the last is live."""
    alone: list[float] = field(default_factory=list)
    """Documents per second if the embedder alone processes their chunks."""
    processor: list[dict[str, float]] = field(default_factory=list)
    """Processor seconds per document of each role of the chain."""
    alone_processor: list[float] = field(default_factory=list)
    """Processor seconds per document of the embedder alone."""

    @property
    def ratios(self) -> list[float]:
        """The chain's rate divided by the embedder's, for each round."""
        return [c / a for c, a in zip(self.chain, self.alone, strict=True)]


class EmbedderAlone:
    """As many processes as the ingest worker has, with the same niceness and the same embedder."""

    def __init__(self, settings: Settings) -> None:
        self._pool = ProcessPoolExecutor(
            settings.ingest.concurrency,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start,
            initargs=(settings,),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def seconds(self, texts: Sequence[str]) -> tuple[float, float]:
        """Return the seconds in which the processes embed all texts, and their processor time."""
        batches = [texts[i : i + BATCH] for i in range(0, len(texts), BATCH)]
        started = time.perf_counter()
        embedded, processor = zip(*self._pool.map(_embed, batches), strict=True)
        seconds = time.perf_counter() - started
        if sum(embedded) != len(texts):
            raise EvaluationError(f"{sum(embedded)} of {len(texts)} texts were embedded")
        return seconds, sum(processor)


class Throughputs:
    """Measures kinds of documents on one stack, in one collection."""

    def __init__(
        self, client: JsonClient, collection: str, stack: PrivateStack, alone: EmbedderAlone
    ) -> None:
        """The collection must exist and be empty."""
        self._ingestion, self._run, self._alone = Ingestion(client, collection), stack.run, alone
        settings = stack.settings
        self._chunking = settings.chunking
        self._tokenizer = Tokenizer(settings.models_dir)
        self._texts = FreshTexts(self._tokenizer)

    def measure(self, kind: Kind, seconds: float, rounds: int) -> Throughput:
        """Time rounds of about `seconds` each, chain and embedder in turns, after a warm-up."""
        self._ingestion.run(self._documents(kind, WARM_UP))
        rate = self._alone_rate(kind)
        result = Throughput(kind, documents=max(WARM_UP, round(seconds * rate)))
        for _ in range(rounds):
            documents = self._documents(kind, result.documents)
            chunks = [text for document in documents for text in self._chunks(document)]
            before = seconds_by_role(self._run)
            result.chain.append(len(documents) / self._ingestion.run(documents))
            result.processor.append(spent(before, seconds_by_role(self._run), len(documents)))
            seconds, processor = self._alone.seconds(chunks)
            result.alone.append(len(documents) / seconds)
            result.alone_processor.append(processor / len(documents))
            result.chunks_per_document = len(chunks) / len(documents)
            result.tokens_per_chunk = statistics.fmean(map(self._tokenizer.count, chunks))
        return result

    def _alone_rate(self, kind: Kind) -> float:
        """Return the rough number of documents per second; also warms up the processes."""
        for _ in range(2):
            documents = self._documents(kind, WARM_UP)
            seconds, _ = self._alone.seconds([t for d in documents for t in self._chunks(d)])
        return len(documents) / seconds

    def _documents(self, kind: Kind, count: int) -> list[str]:
        return [self._texts.document(kind.tokens) for _ in range(count)]

    def _chunks(self, document: str) -> list[str]:
        """Return the texts that the chain embeds for a document, cut by the chain's own steps."""
        sections = sectionize(ExtractedText(document, "text/plain"))
        cut = chunk(document, sections, self._tokenizer, self._chunking, "")
        return [document[c.start : c.end] for c in cut]


_embedder: Embedder


def _start(settings: Settings) -> None:
    global _embedder
    os.nice(settings.ingest.niceness)
    if settings.ingest.niceness >= BACKGROUND_NICENESS:
        os.environ[BACKGROUND] = "1"
    _embedder = make_embedder(settings)


def _embed(texts: Sequence[str]) -> tuple[int, float]:
    began = time.process_time()
    return len(_embedder.passages(texts)), time.process_time() - began

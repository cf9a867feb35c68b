"""An agent over a ledger and a store in memory, and documents that are put there, for tests.

with make_setup(tmp_path, embedder) as home:
    home.put("leave.txt", "Parental leave lasts 20 weeks.")
    assert home.ask("How long is parental leave?").answered
"""

import hashlib
import math
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from backend_parts import backend_of
from ledger_moves import store_chunks
from memory_store import MemoryStore
from openai_server import OpenAIServer

from callslip.agent.agent import Agent
from callslip.agent.answer_text import NO_PASSAGE, NOT_HERE
from callslip.agent.budget import Budgeted
from callslip.agent.citations import in_force
from callslip.agent.conversations import Threads, make_saver
from callslip.agent.messages import Answer, AnswerRequest
from callslip.agent.reports import NodeReport
from callslip.config.sections.ranking import MemorySettings
from callslip.config.settings import Settings
from callslip.models.embedders.contract import Embedder, Vectors
from callslip.models.entities import Recognizer
from callslip.models.language_models.client import LanguageModel
from callslip.models.text.analyzer import Analyzer
from callslip.models.text.language import lang
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger, Submission
from callslip.stores.levels import PASSAGE
from callslip.stores.metrics import Metric
from callslip.stores.properties.filters import Where
from callslip.stores.records import ChunkRecord, CollectionSchema, RetrieverHit, Value, VectorSpec
from callslip.stores.ties import ranked

COLLECTION = "papers"
"""The collection that documents are put into unless another one is named."""

FACTS = (
    "Lunch in the canteen costs 6 euros.",
    "Working from home is possible on three days a week.",
    "The library opens at nine in the morning.",
    "Dogs are not allowed in the reading room.",
    "A lost card is replaced for 10 euros.",
    "The fire drill takes place every March.",
    "Visitors must sign in at the front desk.",
    "Printing in colour costs 20 cents a page.",
    "The car park closes at midnight.",
    "Expenses are refunded within 14 days.",
    "Bicycles are kept in the basement.",
    "Rooms are booked on the intranet.",
    "The gym is free for all staff.",
    "New staff get a laptop on their first day.",
    "Salaries are paid on the 25th of each month.",
    "Travel by train is preferred to flights.",
    "Overtime is paid at one and a half times the rate.",
    "Sick notes are needed from the third day on.",
    "Keys are handed out by the caretaker.",
    "The dentist visits the school in June.",
    "Water samples are taken weekly.",
    "Passwords must have twelve characters.",
    "Backups are kept for ninety days.",
    "The choir rehearses on Tuesday evenings.",
    "Waste is sorted into four bins.",
    "주차 요금은 하루 만 원이다.",
    "구내식당은 오전 11시에 문을 연다.",
    "연차휴가는 15일을 부여한다.",
    "회의실은 사내망에서 예약한다.",
    "급여는 매월 25일에 지급한다.",
    "출장비는 14일 안에 정산한다.",
    "자전거는 지하에 보관한다.",
    "신입 사원은 첫날 노트북을 받는다.",
    "비밀번호는 열두 자 이상이어야 한다.",
    "화재 훈련은 매년 3월에 실시한다.",
    "방문객은 안내 데스크에서 등록한다.",
)
"""Passages on as many topics, in English and Korean."""

K1, B = 1.2, 0.75

ANALYZER = Analyzer()


class Bm25Store(MemoryStore):
    """The store in memory, whose keyword scores are BM25 (Robertson and Zaragoza 2009)."""

    def keyword_query(
        self,
        collection: str,
        terms: str,
        limit: int,
        where: Where | None = None,
        *,
        tenant: str = "",
    ) -> list[RetrieverHit]:
        every = self._matching(collection, None, tenant)
        bags = {c.chunk_id: Counter(c.terms.split()) for c in every}
        holding = Counter(term for bag in bags.values() for term in bag)
        mean = sum(map(Counter.total, bags.values())) / max(1, len(bags)) or 1.0

        def score(bag: Counter[str]) -> float:
            scale = K1 * (1 - B + B * bag.total() / mean)
            return sum(
                math.log(1 + (len(bags) - holding[term] + 0.5) / (holding[term] + 0.5))
                * bag[term]
                * (K1 + 1)
                / (bag[term] + scale)
                for term in terms.split()
            )

        found = self._matching(collection, where, tenant)
        hits = [RetrieverHit(c.chunk_id, score(bags[c.chunk_id])) for c in found]
        return ranked([hit for hit in hits if hit.score > 0])[:limit]


class Remembering:
    """An embedder that embeds no text twice."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._passages: dict[str, Vectors] = {}
        self._queries: dict[str, Vectors] = {}
        self.model, self.dimension = embedder.model, embedder.dimension
        self.max_tokens, self.lexical_only = embedder.max_tokens, embedder.lexical_only

    def passages(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self._passages]
        if new:
            self._passages |= dict(zip(new, self._embedder.passages(new), strict=True))
        rows = [self._passages[text] for text in texts]
        return np.stack(rows) if rows else np.empty((0, self.dimension), np.float32)

    def query(self, text: str) -> Vectors:
        if text not in self._queries:
            self._queries[text] = self._embedder.query(text)
        return self._queries[text]


class Placed(NamedTuple):
    """A document that was put there. `text` is its extracted text."""

    document_id: str
    chunk_ids: list[str]
    text: str


class Setup:
    """An agent and what it reads from. `server` writes, where one is given."""

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        store: Store,
        embedder: Embedder,
        threads: Threads,
        server: OpenAIServer | None,
    ) -> None:
        self.settings, self.ledger, self.store, self.threads = settings, ledger, store, threads
        self.engine = Resources(
            backend_of(ledger, store, settings), embedder, ANALYZER, Recognizer()
        )
        self.learning = Learning(ledger, settings.memory, settings.traces)
        self.server = server
        self.model = LanguageModel(settings.llm) if server else None
        self.agent = Agent(settings, self.engine, self.learning, threads, self._budgeted)
        self.texts: dict[str, str] = {}
        self.reports: list[NodeReport] = []

    def change(self, **sections: Any) -> None:
        """Sections of the settings, from now on."""
        self.settings = self.settings.model_copy(update=sections)
        self.engine.backend = replace(self.engine.backend, settings=self.settings)
        self.learning = Learning(self.ledger, self.settings.memory, self.settings.traces)
        self.agent = Agent(self.settings, self.engine, self.learning, self.threads, self._budgeted)

    def make(self, name: str, *tenants: str, metric: Metric = "cosine") -> None:
        """A collection, of these tenants where any are named."""
        spec = VectorSpec(self.engine.embedder.dimension, metric=metric)
        schema = CollectionSchema(name, spec, tenants=bool(tenants))
        self.store.ensure_schema(schema)
        model = self.engine.embedder.model
        self.ledger.collections.create(schema, store="memory", embedder=model, analyzer="2")
        for tenant in tenants:
            self.ledger.tenants.create(name, tenant)
            self.store.ensure_tenant(name, tenant)

    def put(
        self,
        name: str,
        *passages: str,
        collection: str = COLLECTION,
        tenant: str = "",
        title: str = "",
        heading: str = "",
        **properties: Value,
    ) -> Placed:
        """A document of these passages, each a chunk, live at once."""
        text = "\n\n".join(passages)
        digest = hashlib.sha256(f"{name}\0{text}".encode()).hexdigest()
        item = self.ledger.documents.submit(
            collection,
            Submission(name, name, title, digest, len(text), dict(properties)),
            uuid.uuid4().hex,
            tenant=tenant,
        )
        ids = [hashlib.sha256(f"{item}{n}".encode()).hexdigest()[:32] for n in range(len(passages))]
        claim = store_chunks(self.ledger, item, ids)
        vectors = self.engine.embedder.passages(passages)
        chunks, start = [], 0
        for n, (chunk_id, body) in enumerate(zip(ids, passages, strict=True)):
            scope: dict[str, Any] = {"start": start, "end": start + len(body), "ordinal": n}
            chunk = ChunkRecord(
                chunk_id,
                item.document_id,
                body,
                ANALYZER.analyze(body),
                vectors[n],
                **{"title": title, "heading": heading, "filename": name, "lang": lang(body)},
                **scope,
                level=PASSAGE,
                properties=properties,
            )
            chunks.append(chunk)
            start += len(body) + 2
        assert not self.store.batch_upsert_chunks(collection, chunks, tenant=tenant).failed
        self.ledger.collections.has_properties(collection, list(properties))
        self.ledger.leases.go_live(claim, ids, {})
        self.texts[item.document_id] = text
        return Placed(item.document_id, ids, text)

    def drop(self, placed: Placed, collection: str = COLLECTION, tenant: str = "") -> None:
        """Take a document out again."""
        self.ledger.documents.delete(placed.document_id)
        self.store.delete_documents(collection, [placed.document_id], tenant=tenant)

    def ask(self, question: str, collection: str = COLLECTION, **more: Any) -> Answer:
        """A question, its answer checked; `reports` has what the nodes said of it."""
        self.reports = []
        request = self.request(question, collection, **more)
        return check_supported(self, self.agent.answer(request, self.reports.append))

    def request(self, question: str, collection: str = COLLECTION, **more: Any) -> AnswerRequest:
        """The same, not asked yet."""
        return AnswerRequest(collection=collection, question=question, **more)

    def furnish(self) -> None:
        """Four documents of FACTS, so that scores can be held against them."""
        for n in range(4):
            self.put(f"{n}.txt", *FACTS[n::4])

    @property
    def nodes(self) -> list[str]:
        """The nodes that the last question went through."""
        return [report.node for report in self.reports]

    def _budgeted(self, collection: str, tenant: str) -> Budgeted | None:
        if self.model is None:
            return None
        return Budgeted(self.model, self.ledger.model_usage, self.settings.llm, collection, tenant)


@contextmanager
def make_setup(
    folder: Path,
    embedder: Embedder,
    *,
    store: Store | None = None,
    server: OpenAIServer | None = None,
    metric: Metric = "cosine",
    **settings: Any,
) -> Iterator[Setup]:
    """An empty collection `papers`. Settings are sections; nothing is left to chance."""
    given: dict[str, Any] = {"memory": MemorySettings(exploration="off")} | settings
    if server is not None:
        llm = {"base_url": server.url, "model": "small", "timeout_seconds": 2.0}
        given["llm"] = llm | given.get("llm", {})
    url = f"sqlite:///{folder / 'ledger.db'}"
    with closing(Ledger(url)) as ledger:
        ledger.create()
        saver: Any = make_saver(url, folder)
        threads = Threads(saver, ledger.conversations)
        scope = store or Bm25Store()
        with closing(saver.conn):
            made = Setup(Settings(**given), ledger, scope, embedder, threads, server)
            made.make(COLLECTION, metric=metric)
            yield made


def check_supported(home: Setup, answer: Answer) -> Answer:
    """An answer has its support word for word; what is no answer says nothing else. Gives it."""
    shown = [*answer.citations, *answer.nearest]
    for citation in shown:
        text = home.texts[citation.document_id]
        assert citation.quote == text[citation.span.start : citation.span.end]
        assert citation.passage.start <= citation.span.start
        assert citation.span.end <= citation.passage.end
    assert answer.answered == answer.verdict.approved == (answer.verdict.reason == "supported")
    assert answer.verdict == answer.attempts[-1].verdict
    assert answer.verdict.action is None
    assert 1 <= len(answer.attempts) <= 1 + home.settings.agent.max_iters
    if not answer.answered:
        assert (answer.sentences, answer.citations) == ([], [])
        texts = NOT_HERE if answer.nearest else NO_PASSAGE
        assert answer.text in texts.values()
        return answer
    assert answer.sentences
    assert not answer.nearest
    numbers = [citation.number for citation in answer.citations]
    assert numbers == list(range(1, len(numbers) + 1))
    assert {n for reply in answer.sentences for n in reply.citations} == set(numbers)
    for reply in answer.sentences:
        assert reply.citations
        assert reply.text in answer.text
    assert all(in_force(citation, answer.as_of.at) for citation in answer.citations)
    return answer

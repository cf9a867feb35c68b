"""Measuring retrieval on a judged set: in through the desk, out through the desk."""

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from callslip.errors import CallslipError, EvaluationError, InvalidRequest
from evals import beir
from evals.client import Desk
from evals.measures import measure, rank_documents
from evals.report import LegName, LegReport, Report
from stores.properties import check_properties
from stores.records import FILTERABLE, Value

ALPHA: dict[LegName, float | None] = {"keyword": 0.0, "vector": 1.0, "hybrid": None}
"""Weight of the vector leg; None is whatever the desk does when nothing is said."""

TOP: dict[LegName, int] = {"keyword": 200, "vector": 200, "hybrid": 100}
"""Hits asked for: as many as the desk gives by default, search.max_top. A hybrid search that is
asked for more than search.pool ranks from a larger pool, which is not what 10 hits come from."""

POLL_SECONDS = 0.5

NAMED_FAILURES = 5

LONGEST_TITLE = 1024
"""What the desk takes; the text holds the title whole."""

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """How far a phase (`ingest` or a leg) is, and since how many seconds it runs."""

    phase: str
    done: int
    total: int
    seconds: float


OnProgress = Callable[[Progress], None]


def evaluate(
    folder: Path,
    desk: Desk,
    *,
    collection: str | None = None,
    store: str | None = None,
    most_queries: int | None = None,
    on_progress: OnProgress = lambda progress: None,
    keep: bool = False,
) -> Report:
    """Ingest a judged set into a scratch collection, search it, and drop it unless `keep`.

    `collection` must not hold documents; a new name is made up where none is given. `store` is
    where it is kept, by default as the desk does; `most_queries` bounds those that are asked.

    Raises JudgedSetError before anything is sent, EvaluationError when a document fails or an
    answer is not whole, DeskDown, and what the desk itself answers.
    """
    started = time.monotonic()
    judged = beir.read(folder, most_queries)
    warnings = list(judged.warnings)
    collection = collection or scratch_name(judged.name)
    desk.post("/v1/collections", {"name": collection} | ({"store": store} if store else {}))
    try:
        ids = _ingest(desk, collection, judged, _Clock("ingest", judged.documents, on_progress))
        ingested = time.monotonic()
        legs: dict[LegName, LegReport] = {}
        for leg in ALPHA:
            clock = _Clock(leg, len(judged.queries), on_progress)
            if found := _run_leg(desk, collection, judged, leg, ids, clock):
                legs[leg] = found
            else:
                warnings.append(f"the desk has no vectors, so there is no {leg} leg")
    finally:
        if not keep and (left := _drop(desk, collection)):
            warnings.append(left)
    return Report(
        name=judged.name,
        documents=judged.documents,
        queries=len(judged.queries),
        legs=legs,
        seconds=time.monotonic() - started,
        ingest_seconds=ingested - started,
        collection=collection,
        kept=keep,
        warnings=tuple(warnings),
    )


def scratch_name(name: str) -> str:
    """A collection that nobody else uses."""
    return f"eval-{re.sub(r'[^A-Za-z0-9]+', '-', name)[:40]}-{secrets.token_hex(4)}"


def _ingest(desk: Desk, collection: str, judged: beir.JudgedSet, clock: "_Clock") -> dict[str, str]:
    """Send every document and wait until all are live; the desk's id of each to the set's."""
    path = f"/v1/collections/{collection}/documents"
    ids: dict[str, str] = {}
    corpus = _Shared(judged.corpus())

    def send() -> None:
        for document in corpus:
            at_desk = desk.post(path, _submission(document))["document_id"]
            if at_desk in ids:
                raise EvaluationError(
                    f"documents {ids[at_desk]!r} and {document.document_id!r} have one name at the"
                    " desk, which keeps no control characters and no spaces around a name"
                )
            ids[at_desk] = document.document_id

    with ThreadPoolExecutor(desk.connections) as pool:
        senders = [pool.submit(send) for _ in range(desk.connections)]
        try:
            while _look(desk, path, clock) < judged.documents:
                for sender in senders:
                    if sender.done():
                        sender.result()  # raises what went wrong
        finally:
            corpus.close()
    return ids


def _look(desk: Desk, path: str, clock: "_Clock") -> int:
    """Wait a moment, then count what is live; EvaluationError where a document failed."""
    time.sleep(POLL_SECONDS)
    states = desk.get(path, limit=1)["states"]
    if states.get("failed"):
        raise EvaluationError(_failures(desk, path, states["failed"]))
    live = int(states.get("live", 0))
    clock.tell(live)
    return live


def _failures(desk: Desk, path: str, count: int) -> str:
    """How many documents failed, and why the first few did."""
    named: list[str] = []
    before: dict[str, float] = {}
    while len(named) < min(count, NAMED_FAILURES):
        page = desk.get(path, limit=500, **before)
        for document in page["documents"]:
            if error := document["error"]:
                named.append(f"{document['name']!r} ({error['title']}: {error['detail']})")
        if page["next_before"] is None:
            break
        before = {"before": page["next_before"]}
    return f"{count} documents failed: " + "; ".join(named[:NAMED_FAILURES])


def _submission(document: beir.Document) -> dict[str, Any]:
    """A document as the desk takes it; `.txt`, as an id may end like the name of another format."""
    return {
        "name": f"{document.document_id}.txt",
        "title": document.title[:LONGEST_TITLE],
        "text": document.content,
        "properties": _properties(document.metadata),
        "allow_duplicate": True,
    }


def _properties(metadata: dict[str, Any]) -> dict[str, Value]:
    """What of the metadata the desk takes as properties."""
    kept: dict[str, Value] = {}
    for name, value in metadata.items():
        try:
            kept = check_properties({**kept, name: value}, reserved=FILTERABLE)
        except InvalidRequest:
            continue
    return kept


def _run_leg(
    desk: Desk,
    collection: str,
    judged: beir.JudgedSet,
    leg: LegName,
    ids: dict[str, str],
    clock: "_Clock",
) -> LegReport | None:
    """Run every query; None where the desk does not run this leg."""
    body: dict[str, Any] = {"collection": collection, "top": TOP[leg]}
    if ALPHA[leg] is not None:
        body["alpha"] = ALPHA[leg]

    def search(query: str) -> dict[str, Any]:
        answer = desk.post("/v1/search", {**body, "query": judged.queries[query]})
        if answer["partial"]:
            raise EvaluationError(f"an answer is not whole: {answer['left_out']}")
        return answer

    run: dict[str, dict[str, float]] = {}
    cut: list[int] = []
    with ThreadPoolExecutor(desk.connections) as pool:
        for query, answer in zip(judged.queries, pool.map(search, judged.queries), strict=True):
            if ALPHA[leg] not in (None, answer["alpha"]):
                pool.shutdown(cancel_futures=True)
                return None
            hits = answer["hits"]
            run[query] = rank_documents(ids[hit["document_id"]] for hit in hits)
            if len(hits) == TOP[leg]:
                cut.append(len(run[query]))
            clock.tell(len(run))
    return LegReport(measure(judged.qrels, run), min(cut, default=None), clock.seconds())


def _drop(desk: Desk, collection: str) -> str:
    """Drop the collection; what to say where that did not work."""
    try:
        desk.delete(f"/v1/collections/{collection}")
    except CallslipError as error:
        return f"the scratch collection {collection} was not dropped ({error.detail})"
    return ""


class _Shared(Generic[T]):
    """An iterator that several threads take from; after `close` it has ended for all."""

    def __init__(self, source: Iterator[T]) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._closed = False

    def __iter__(self) -> "_Shared[T]":
        return self

    def __next__(self) -> T:
        with self._lock:
            if self._closed:
                raise StopIteration
            return next(self._source)

    def close(self) -> None:
        self._closed = True


class _Clock:
    """Tells how far a phase is."""

    def __init__(self, phase: str, total: int, on_progress: OnProgress) -> None:
        self._phase, self._total, self._on_progress = phase, total, on_progress
        self._started = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self._started

    def tell(self, done: int) -> None:
        self._on_progress(Progress(self._phase, done, self._total, self.seconds()))

"""Measuring retrieval on a judged set: in through the desk, out through the desk."""

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from callslip.errors import CallslipError, EvaluationError, InvalidRequest
from evals import beir
from evals.client import Desk
from evals.measures import measure, rank_documents
from evals.report import LegName, LegReport, Report
from evals.ways import DEFAULT, KEYWORD, VECTOR, Way
from stores.naming import clean_name
from stores.properties import check_properties
from stores.records import FILTERABLE, Value

LEGS: dict[LegName, Way] = {"keyword": KEYWORD, "vector": VECTOR, "hybrid": DEFAULT}

POLL_SECONDS = 0.5

PAGE = 500
"""Documents listed at a time."""

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
    with ingested(desk, collection, judged, warnings, store, on_progress, keep=keep) as ids:
        ingest_seconds = time.monotonic() - started
        legs: dict[LegName, LegReport] = {}
        for leg, way in LEGS.items():
            found = search_all(desk, collection, judged, way, ids, on_progress)
            if found is None:
                warnings.append(f"the desk has no {way.needs}, so there is no {leg} leg")
                continue
            legs[leg] = LegReport(measure(judged.qrels, found.run), found.depth, found.seconds)
            warnings += found.said(leg)
    return Report(
        name=judged.name,
        documents=judged.documents,
        queries=len(judged.queries),
        legs=legs,
        seconds=time.monotonic() - started,
        ingest_seconds=ingest_seconds,
        collection=collection,
        kept=keep,
        warnings=tuple(warnings),
    )


def scratch_name(name: str) -> str:
    """A collection that nobody else uses."""
    return f"eval-{re.sub(r'[^A-Za-z0-9]+', '-', name)[:40]}-{secrets.token_hex(4)}"


@contextmanager
def ingested(
    desk: Desk,
    collection: str,
    judged: beir.JudgedSet,
    warnings: list[str],
    store: str | None = None,
    on_progress: OnProgress = lambda progress: None,
    *,
    keep: bool = False,
) -> Iterator[dict[str, str]]:
    """The set in a new collection, dropped behind it unless `keep`: the desk's ids to the set's.

    A collection that could not be dropped is added to `warnings`. Raises as `evaluate` does.
    """
    desk.post("/v1/collections", {"name": collection} | ({"store": store} if store else {}))
    try:
        yield _ingest(desk, collection, judged, Clock("ingest", judged.documents, on_progress))
    finally:
        if not keep and (left := _drop(desk, collection)):
            warnings.append(left)


def already_there(desk: Desk, collection: str, judged: beir.JudgedSet) -> dict[str, str]:
    """The desk's ids of a set that was ingested into this collection before, to the set's.

    Raises EvaluationError where a document of the set is not live there.
    """
    live: dict[str, str] = {}
    before: dict[str, float] = {}
    while True:
        page = desk.get(f"/v1/collections/{collection}/documents", limit=PAGE, **before)
        live |= {d["name"]: d["document_id"] for d in page["documents"] if d["state"] == "live"}
        if page["next_before"] is None:
            break
        before = {"before": page["next_before"]}
    names = {document.document_id: _name(document) for document in judged.corpus()}
    if missing := [name for name in names.values() if name not in live]:
        raise EvaluationError(
            f"{len(missing)} of {len(names)} documents are not live in {collection!r}, such as"
            f" {missing[0]!r}"
        )
    return {live[name]: document_id for document_id, name in names.items()}


def _ingest(desk: Desk, collection: str, judged: beir.JudgedSet, clock: "Clock") -> dict[str, str]:
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


def _look(desk: Desk, path: str, clock: "Clock") -> int:
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
        page = desk.get(path, limit=PAGE, **before)
        for document in page["documents"]:
            if error := document["error"]:
                named.append(f"{document['name']!r} ({error['title']}: {error['detail']})")
        if page["next_before"] is None:
            break
        before = {"before": page["next_before"]}
    return f"{count} documents failed: " + "; ".join(named[:NAMED_FAILURES])


def _name(document: beir.Document) -> str:
    """As the desk keeps it; `.txt`, as an id may end like the name of another format."""
    return clean_name(f"{document.document_id}.txt")


def _submission(document: beir.Document) -> dict[str, Any]:
    """A document as the desk takes it."""
    return {
        "name": _name(document),
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


@dataclass(frozen=True)
class Found:
    """What one way of searching found: query id to document id to score, see rank_documents.

    `depth` as in LegReport; `late` counts the answers whose reranker was left out.
    """

    run: Mapping[str, Mapping[str, float]]
    depth: int | None
    late: int
    seconds: float

    def said(self, way: str) -> list[str]:
        """What must be known beside it."""
        if not self.late:
            return []
        return [f"the reranker was left out of {self.late} of {len(self.run)} answers of {way}"]


def search_all(
    desk: Desk,
    collection: str,
    judged: beir.JudgedSet,
    way: Way,
    ids: Mapping[str, str],
    on_progress: OnProgress = lambda progress: None,
) -> Found | None:
    """Ask every query this way; None where the desk lacks what it needs.

    Raises EvaluationError when a leg is missing from an answer, and what the desk answers.
    """
    clock = Clock(way.name, len(judged.queries), on_progress)

    def search(query: str) -> dict[str, Any]:
        body = {"collection": collection, "top": way.top, "query": judged.queries[query]}
        if way.at_time and query in judged.as_of:
            body["as_of"] = judged.as_of[query]
        answer = desk.search(body | dict(way.body))
        if answer["partial"] and set(answer["left_out"]) != {"rerank"}:
            raise EvaluationError(f"an answer is not whole: {answer['left_out']}")
        return answer

    run: dict[str, dict[str, float]] = {}
    cut: list[int] = []
    late = 0
    with ThreadPoolExecutor(desk.connections) as pool:
        for query, answer in zip(judged.queries, pool.map(search, judged.queries), strict=True):
            if way.lacks(answer):
                pool.shutdown(cancel_futures=True)
                return None
            hits = answer["hits"]
            run[query] = rank_documents(ids[hit["document_id"]] for hit in hits)
            if len(hits) == way.top:
                cut.append(len(run[query]))
            late += "rerank" in answer["left_out"]
            clock.tell(len(run))
    return Found(run, min(cut, default=None), late, clock.seconds())


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


class Clock:
    """Tells how far a phase is."""

    def __init__(self, phase: str, total: int, on_progress: OnProgress) -> None:
        self._phase, self._total, self._on_progress = phase, total, on_progress
        self._started = time.monotonic()

    def seconds(self) -> float:
        """Since it was made."""
        return time.monotonic() - self._started

    def tell(self, done: int) -> None:
        """So many are done."""
        self._on_progress(Progress(self._phase, done, self._total, self.seconds()))

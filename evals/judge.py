"""Measures retrieval on a judged set: ingests it through the server and searches on the server."""

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from callslip.errors import CallslipError, CollectionExists, EvaluationError, InvalidRequest
from callslip.evals import beir
from callslip.evals.client import JsonClient
from callslip.evals.measures import compare_with_half, measure, measure_each, rank_documents
from callslip.evals.report import Comparison, Report, RetrieverName, RetrieverReport
from callslip.evals.variants import DEFAULT, KEYWORD, VECTOR, Variant
from callslip.stores.naming import clean_name
from callslip.stores.properties.values import check_properties
from callslip.stores.records import FILTERABLE, Value

RETRIEVERS: dict[RetrieverName, Variant] = {"keyword": KEYWORD, "vector": VECTOR, "hybrid": DEFAULT}

POLL_SECONDS = 0.5

PAGE = 500
"""The number of documents in one page of a list."""

NAMED_FAILURES = 5

LONGEST_TITLE = 1024
"""The longest title that the server accepts; the text contains the whole title."""

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """The progress of a phase (`ingest` or a retriever), and the seconds since its start."""

    phase: str
    done: int
    total: int
    seconds: float


OnProgress = Callable[[Progress], None]


def evaluate(
    folder: Path,
    client: JsonClient,
    *,
    collection: str | None = None,
    store: str | None = None,
    most_queries: int | None = None,
    on_progress: OnProgress = lambda progress: None,
    keep: bool = False,
) -> Report:
    """Ingest a judged set into a scratch collection, search it, and drop it unless `keep`.

    `collection` must have no documents; by default it gets a new name. `store` is the collection's
    store, by default that of the server's settings. `most_queries` is the maximum number of
    queries.

    Raises JudgedSetError before anything is sent, EvaluationError if a document fails or a response
    is incomplete, ServerDown, and the errors of the server.
    """
    started = time.monotonic()
    judged = beir.read(folder, most_queries)
    warnings = list(judged.warnings)
    collection = collection or scratch_name(judged.name)
    with ingested(client, collection, judged, warnings, store, on_progress, keep=keep) as ids:
        ingest_seconds = time.monotonic() - started
        legs: dict[RetrieverName, RetrieverReport] = {}
        ndcg: dict[str, dict[str, float]] = {}
        for retriever, variant in RETRIEVERS.items():
            searched = search_all(client, collection, judged, variant, ids, on_progress)
            if searched is None:
                warnings.append(
                    f"the server has no {variant.needs}, so there is no {retriever} retriever"
                )
                continue
            legs[retriever] = RetrieverReport(
                measure(judged.qrels, searched.run), searched.depth, searched.seconds
            )
            ndcg[retriever] = measure_each(judged.qrels, searched.run)["ndcg@10"]
            warnings += searched.remarks(retriever)
    compared = compare_with_half(ndcg, "hybrid", ("keyword", "vector"))
    return Report(
        name=judged.name,
        documents=judged.documents,
        queries=len(judged.queries),
        legs=legs,
        comparison=compared and Comparison(*compared),
        seconds=time.monotonic() - started,
        ingest_seconds=ingest_seconds,
        collection=collection,
        remains=keep,
        warnings=tuple(warnings),
    )


def scratch_name(name: str) -> str:
    """Return the name of a collection that no other run uses."""
    return f"eval-{plain_name(name)}-{secrets.token_hex(4)}"


def plain_name(name: str) -> str:
    """Return the name of a set as a part of a collection's name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name)[:40]


@contextmanager
def ingested(
    client: JsonClient,
    collection: str,
    judged: beir.JudgedSet,
    warnings: list[str],
    store: str | None = None,
    on_progress: OnProgress = lambda progress: None,
    *,
    keep: bool = False,
) -> Iterator[dict[str, str]]:
    """Ingest the set into a new collection; yield the map of the server's ids to the set's.

    Drops the collection at the end, unless `keep`; if that fails, adds the collection to
    `warnings`. Raises the same errors as `evaluate`.
    """
    with scratch(client, collection, warnings, store, keep=keep):
        clock = Clock("ingest", judged.documents, on_progress)
        yield _ingest(client, collection, judged.corpus(), judged.documents, clock)


@contextmanager
def scratch(
    client: JsonClient,
    collection: str,
    warnings: list[str],
    store: str | None = None,
    *,
    keep: bool = False,
) -> Iterator[None]:
    """Create a collection, and drop it at the end as `ingested` does."""
    client.post("/v1/collections", {"name": collection} | ({"store": store} if store else {}))
    try:
        yield
    finally:
        if not keep and (left := _drop(client, collection)):
            warnings.append(left)


def completed(
    client: JsonClient,
    collection: str,
    judged: beir.JudgedSet,
    store: str | None = None,
    on_progress: OnProgress = lambda progress: None,
) -> dict[str, str]:
    """Ingest what a collection lacks of the set; map the server's document ids to the set's.

    The collection is created if it does not exist, and stays. Raises the same errors as `evaluate`.
    """
    body = {"name": collection} | ({"store": store} if store else {})
    with suppress(CollectionExists):
        client.post("/v1/collections", body)
    live = _live(client, collection)
    clock = Clock("ingest", judged.documents, on_progress)
    missing = (document for document in judged.corpus() if _name(document.document_id) not in live)
    _ingest(client, collection, missing, judged.documents, clock)
    return already_there(client, collection, judged)


def already_there(client: JsonClient, collection: str, judged: beir.JudgedSet) -> dict[str, str]:
    """Map the server's document ids to the set's, for a set that was ingested earlier.

    Raises EvaluationError if a document of the set is not live in the collection, or one that was
    removed from the set is.
    """
    live = _live(client, collection)
    if extra := [name for name in map(_name, judged.taken_out) if name in live]:
        raise EvaluationError(
            f"{len(extra)} documents that are removed from the set are live in {collection!r}, such"
            f" as {extra[0]!r}"
        )
    names = {document.document_id: _name(document.document_id) for document in judged.corpus()}
    if missing := [name for name in names.values() if name not in live]:
        raise EvaluationError(
            f"{len(missing)} of {len(names)} documents are not live in {collection!r}, such as"
            f" {missing[0]!r}"
        )
    return {live[name]: document_id for document_id, name in names.items()}


def _live(client: JsonClient, collection: str) -> dict[str, str]:
    """Map the name of each live document of a collection to its id."""
    live: dict[str, str] = {}
    before: dict[str, float] = {}
    while True:
        page = client.get(f"/v1/collections/{collection}/documents", limit=PAGE, **before)
        live |= {d["name"]: d["document_id"] for d in page["documents"] if d["state"] == "live"}
        if page["next_before"] is None:
            return live
        before = {"before": page["next_before"]}


def _ingest(
    client: JsonClient,
    collection: str,
    documents: Iterator[beir.Document],
    total: int,
    clock: "Clock",
) -> dict[str, str]:
    """Send the documents and wait until `total` are live; map the server's ids to the set's."""
    path = f"/v1/collections/{collection}/documents"
    ids: dict[str, str] = {}
    corpus = _Shared(documents)

    def send() -> None:
        for document in corpus:
            document_id = client.post(path, _submission(document))["document_id"]
            if document_id in ids:
                raise EvaluationError(
                    f"documents {ids[document_id]!r} and {document.document_id!r} have one name at"
                    " the server, which strips control characters and spaces around a name"
                )
            ids[document_id] = document.document_id

    with ThreadPoolExecutor(client.connections) as pool:
        senders = [pool.submit(send) for _ in range(client.connections)]
        try:
            while _look(client, path, clock) < total:
                for sender in senders:
                    if sender.done():
                        sender.result()  # raises the errors of the uploads
        finally:
            corpus.close()
    return ids


def _look(client: JsonClient, path: str, clock: "Clock") -> int:
    """Wait for a poll interval, then count live documents; EvaluationError if one failed."""
    time.sleep(POLL_SECONDS)
    states = client.get(path, limit=1)["states"]
    if states.get("failed"):
        raise EvaluationError(_failures(client, path, states["failed"]))
    live = int(states.get("live", 0))
    clock.tell(live)
    return live


def _failures(client: JsonClient, path: str, count: int) -> str:
    """The number of failed documents, and the errors of the first ones."""
    named: list[str] = []
    before: dict[str, float] = {}
    while len(named) < min(count, NAMED_FAILURES):
        page = client.get(path, limit=PAGE, **before)
        for document in page["documents"]:
            if error := document["error"]:
                named.append(f"{document['name']!r} ({error['title']}: {error['detail']})")
        if page["next_before"] is None:
            break
        before = {"before": page["next_before"]}
    return f"{count} documents failed: " + "; ".join(named[:NAMED_FAILURES])


def _name(document_id: str) -> str:
    """The name in the server; it ends in `.txt`, as an id may end like another file format."""
    return clean_name(f"{document_id}.txt")


def _submission(document: beir.Document) -> dict[str, Any]:
    """The document as the body of a submission."""
    return {
        "name": _name(document.document_id),
        "title": document.title[:LONGEST_TITLE],
        "text": document.content,
        "properties": _properties(document.metadata),
        "allow_duplicate": True,
    }


def _properties(metadata: dict[str, Any]) -> dict[str, Value]:
    """The part of the metadata that the server accepts as properties."""
    checked: dict[str, Value] = {}
    for name, value in metadata.items():
        try:
            checked = check_properties({**checked, name: value}, reserved=FILTERABLE)
        except InvalidRequest:
            continue
    return checked


@dataclass(frozen=True)
class SearchedSet:
    """The results of one variant: query id to document id to score, see rank_documents.

    `depth` is as in RetrieverReport; `late` counts the responses without the reranker.
    """

    run: Mapping[str, Mapping[str, float]]
    depth: int | None
    late: int
    seconds: float

    def remarks(self, variant: str) -> list[str]:
        """Remarks for the report, about responses without the reranker."""
        if not self.late:
            return []
        return [f"the reranker was left out of {self.late} of {len(self.run)} answers of {variant}"]


def search_all(
    client: JsonClient,
    collection: str,
    judged: beir.JudgedSet,
    variant: Variant,
    ids: Mapping[str, str],
    on_progress: OnProgress = lambda progress: None,
) -> SearchedSet | None:
    """Search for every query with a variant; return None if the server lacks a part that it needs.

    Raises EvaluationError if a retriever is missing from a response, and the errors of the server.
    """
    clock = Clock(variant.name, len(judged.queries), on_progress)

    def search(query: str) -> dict[str, Any]:
        body = {"collection": collection, "top": variant.top, "query": judged.queries[query]}
        if variant.at_time and query in judged.as_of:
            body["as_of"] = judged.as_of[query]
        answer = client.search(body | dict(variant.body))
        if answer["partial"] and set(answer["left_out"]) != {"rerank"}:
            raise EvaluationError(f"an answer is not whole: {answer['left_out']}")
        return answer

    run: dict[str, dict[str, float]] = {}
    cut: list[int] = []
    late = 0
    with ThreadPoolExecutor(client.connections) as pool:
        for query, answer in zip(judged.queries, pool.map(search, judged.queries), strict=True):
            if variant.lacks(answer):
                pool.shutdown(cancel_futures=True)
                return None
            hits = answer["hits"]
            run[query] = rank_documents(ids[hit["document_id"]] for hit in hits)
            if len(hits) == variant.top:
                cut.append(len(run[query]))
            late += "rerank" in answer["left_out"]
            clock.tell(len(run))
    return SearchedSet(run, min(cut, default=None), late, clock.seconds())


def _drop(client: JsonClient, collection: str) -> str:
    """Drop the collection; return a warning if that fails, otherwise an empty string."""
    try:
        client.delete(f"/v1/collections/{collection}")
    except CallslipError as error:
        return f"the scratch collection {collection} was not dropped ({error.detail})"
    return ""


class _Shared(Generic[T]):
    """An iterator that several threads read; `close` ends it for all of them."""

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
    """Reports the progress of a phase."""

    def __init__(self, phase: str, total: int, on_progress: OnProgress) -> None:
        self._phase, self._total, self._on_progress = phase, total, on_progress
        self._started = time.monotonic()

    def seconds(self) -> float:
        """The seconds since the start of the phase."""
        return time.monotonic() - self._started

    def tell(self, done: int) -> None:
        """Report the number of finished items."""
        self._on_progress(Progress(self._phase, done, self._total, self.seconds()))

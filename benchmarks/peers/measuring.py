"""The work of one system in one round, and its figures."""

import statistics
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.peers.material import Material
from benchmarks.peers.running import Gone, Running, disk
from callslip.errors import EvaluationError
from callslip.evals.measures import measure, rank_documents
from callslip.evals.tables import tell

CLIENTS = (1, 4, 16)
"""Searches at one time."""

WARM_SEARCHES = 16
"""Searches before each measurement, which are not measured."""

POLL_SECONDS = 0.05

Start = Callable[[Path], Running]
"""Starts the system over a folder of data."""


@dataclass(frozen=True)
class Survival:
    """What a system has after all its processes were killed in the middle of an ingestion."""

    acknowledged: int
    """Documents that the system had acknowledged before."""
    at_once: int
    """Whole documents as soon as it runs again."""
    at_last: int
    """Whole documents when nothing is underway any more; nobody sent any again."""
    partial: int
    """Documents at last of which a part can be found."""


@dataclass
class Round:
    """The figures of a system in one round, by the name of the row."""

    figures: dict[str, float] = field(default_factory=dict)
    survival: Survival | None = None
    remarks: list[str] = field(default_factory=list)


def measure_round(name: str, start: Start, material: Material, searches: int, data: Path) -> Round:
    """Ingest, search, change, delete; then ingest again and kill in the middle."""
    result = Round()
    figures = result.figures
    with start(data / "kept") as system:
        system.request("ingest", folder=str(material.warm))
        tell(f"{name}: ingesting {len(material.chunks)} documents")
        with system.watched() as spent:
            took = system.request("ingest", folder=str(material.whole))["seconds"]
        figures["ingest documents/s"] = len(material.chunks) / took
        figures["ingest processor ms"] = 1000 * spent.processor / len(material.chunks)
        figures["memory peak"], figures["memory at rest"] = spent.peak, system.memory()
        figures["disk"] = disk(data / "kept")
        _check(result, system, dict(material.chunks), "ingestion")
        figures |= _searched(name, system, material, searches)
        tell(f"{name}: changing and deleting")
        figures["change s"] = system.request("change", folder=str(material.changed))["seconds"]
        figures["delete s"] = system.request("delete", names=material.deleted)["seconds"]
        gone = set(material.deleted)
        left = {each: count for each, count in material.chunks.items() if each not in gone}
        _check(result, system, left, "deletion", gone)
    try:
        result.survival = _killed(name, start, material, data / "killed")
    except Gone as error:
        result.remarks.append(f"after kill -9: {error.detail.splitlines()[-1]}")
    return result


def _searched(name: str, system: Running, material: Material, searches: int) -> Mapping[str, float]:
    figures: dict[str, float] = {}
    run: dict[str, dict[str, float]] = {}
    for number, clients in enumerate(CLIENTS):
        tell(f"{name}: {searches} searches, {clients} at one time")
        ids = material.searches(number, searches)
        queries = [material.queries[query] for query in ids]
        system.request("search", queries=queries[:WARM_SEARCHES], clients=clients)
        with system.watched() as spent:
            done = system.request("search", queries=queries, clients=clients)
        run |= {q: rank_documents(f) for q, f in zip(ids, done["found"], strict=True)}
        cuts = statistics.quantiles(done["milliseconds"], n=20)
        figures[f"search {clients} p50"] = statistics.median(done["milliseconds"])
        figures[f"search {clients} p95"] = cuts[-1]
        figures[f"search {clients}/s"] = searches / done["seconds"]
        figures[f"search {clients} processor ms"] = 1000 * spent.processor / searches
    qrels = {query: material.qrels[query] for query in run}
    return figures | {"ndcg@10": measure(qrels, run)["ndcg@10"]}


def _killed(name: str, start: Start, material: Material, data: Path) -> Survival | None:
    """Kill when half of the documents are searchable; None if the ingestion ended before."""
    tell(f"{name}: killing it in the middle of an ingestion")
    with start(data) as system:
        system.request("ingest", folder=str(material.warm))

        def ingest() -> None:
            with suppress(Gone):
                system.request("ingest", folder=str(material.whole))

        thread = threading.Thread(target=ingest)
        thread.start()
        while thread.is_alive() and system.searchable < len(material.chunks) / 2:
            time.sleep(POLL_SECONDS)
        if not thread.is_alive():
            return None
        acknowledged = system.acknowledged
        system.kill()
        thread.join()
    with start(data) as system:
        at_once = _whole(system, material)
        system.request("settle")
        stored = system.request("stored")["chunks"]
        whole = _whole(system, material)
    known = sum(1 for each in material.chunks if stored.get(each))
    return Survival(acknowledged, at_once, whole, known - whole)


def _whole(system: Running, material: Material) -> int:
    stored = system.request("stored")["chunks"]
    return sum(1 for each, count in material.chunks.items() if stored.get(each, 0) >= count)


def _check(
    result: Round,
    system: Running,
    expected: Mapping[str, int],
    after: str,
    gone: Collection[str] = (),
) -> None:
    """Note which documents are missing, or are there although they were deleted."""
    stored: dict[str, int] = system.request("stored")["chunks"]
    lacking = sum(1 for each in expected if not stored.get(each))
    cut = sum(1 for each, count in expected.items() if 0 < stored.get(each, 0) < count)
    still = sum(1 for each in gone if stored.get(each))
    if lacking or cut or still:
        result.remarks.append(
            f"after {after}: {lacking} documents missing, {cut} in part, {still} not deleted"
        )
    if after == "ingestion" and lacking == len(expected):
        raise EvaluationError(f"no document can be found after {after}")

"""`make bench`: throughput, search latency and memory of a private stack.

Prints Markdown tables, and writes every repeat of every figure to a JSON file, with the commit, the
machine, the load and the versions.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.fresh_texts import FreshTexts
from benchmarks.machine import FOLDER, ROOT, Figure, Record
from benchmarks.private_stack import PrivateStack, private_stack
from benchmarks.speed import latency, memory
from benchmarks.speed.latency import Latency, ingesting, percentiles
from benchmarks.speed.memory import RoleMemory
from benchmarks.speed.throughput import EmbedderAlone, Kind, Throughput, Throughputs
from callslip.config.settings import Settings
from callslip.errors import CallslipError
from callslip.evals.client import JsonClient
from callslip.evals.tables import header, table, tell
from callslip.models.e5.tokens import Tokenizer
from callslip.models.registry import make_analyzer, make_embedder, make_recognizer
from callslip.retrieval.candidates.resources import Resources
from callslip.stores.backend import Backend
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger
from callslip.stores.registry import make_store

LONG = Kind("several chunks", tokens=2500)
SHORT = Kind("one chunk", tokens=300)

COLLECTION = "bench"

SECONDS, ROUNDS = 30.0, 3
QUICK_SECONDS, QUICK_ROUNDS = 8.0, 1


def main() -> None:
    """Measure and print; after a failure, print the reason and exit with 1."""
    options = _options()
    seconds = QUICK_SECONDS if options.quick else options.seconds
    rounds = QUICK_ROUNDS if options.quick else options.rounds
    record = Record()
    try:
        tell("Starting a stack of its own")
        with private_stack() as stack, JsonClient(stack.run.api_url) as client:
            client.post("/v1/collections", {"name": COLLECTION})
            print(_header(stack.settings, seconds, rounds), end="\n\n")
            throughputs = _throughputs(client, stack, seconds, rounds)
            print(_throughput_table(throughputs), end="\n\n")
            latencies, memories = _latencies(client, stack, seconds)
            print(_latency_table(latencies), end="\n\n")
            print(_memory_table(memories))
            file = record.write(
                options.json,
                figures(throughputs, latencies, memories),
                settings={
                    "embedder": stack.settings.embedder.kind,
                    "embedder_threads": stack.settings.embedder_threads,
                    "ingest_processes": stack.settings.ingest.concurrency,
                },
            )
            tell(f"Written to {file}")
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each throughput")
    parser.add_argument("--quick", action="store_true", help="a first look in about two minutes")
    parser.add_argument(
        *("--json", "-j"),
        type=Path,
        metavar="FILE",
        help=f"default: a new file in {FOLDER.relative_to(ROOT)}/, named by time and commit",
    )
    return parser.parse_args()


def figures(
    throughputs: Sequence[Throughput], latencies: Sequence[Latency], memories: Sequence[RoleMemory]
) -> list[Figure]:
    """Return every figure of the tables with all repeats."""
    result = []
    for each in throughputs:
        name = each.kind.name
        result += [
            Figure(f"{name}: chain", "documents/s", each.chain),
            Figure(f"{name}: embedder alone", "documents/s", each.alone),
            Figure(f"{name}: chunks of a document", "chunks", [each.chunks_per_document]),
            Figure(f"{name}: tokens of a chunk", "tokens", [each.tokens_per_chunk]),
            Figure(f"{name}: processor of embedder alone", "s/document", each.alone_processor),
        ]
        roles = {role for took in each.processor for role in took}
        result += [
            Figure(
                f"{name}: processor of {role}",
                "s/document",
                [took.get(role, 0.0) for took in each.processor],
            )
            for role in sorted(roles)
        ]
    for situation in latencies:
        result += [
            Figure(f"search {situation.situation}: {name}", "ms", took)
            for name, took in _series(situation).items()
        ]
    return result + [
        Figure(f"memory: {each.role}", f"MB ({memory.unit()}) of each process", each.megabytes)
        for each in memories
    ]


def _throughputs(
    client: JsonClient, stack: PrivateStack, seconds: float, rounds: int
) -> list[Throughput]:
    with EmbedderAlone(stack.settings) as alone:
        throughputs = Throughputs(client, COLLECTION, stack, alone)
        results = []
        for kind in (LONG, SHORT):
            tell(f"Ingesting documents of {kind.name}")
            results.append(throughputs.measure(kind, seconds, rounds))
        return results


def _latencies(
    client: JsonClient, stack: PrivateStack, seconds: float
) -> tuple[list[Latency], list[RoleMemory]]:
    texts = FreshTexts(Tokenizer(stack.settings.models_dir))
    with _engine(stack.settings) as engine:
        tell("Searching, idle")
        idle = latency.measure(client, engine, texts, COLLECTION, "idle", seconds)
        tell("Searching while ingesting")
        with ingesting(client, texts, COLLECTION, LONG.tokens):
            busy = latency.measure(client, engine, texts, COLLECTION, "while ingesting", seconds)
            memories = memory.by_role(stack.run)
    return [idle, busy], memories


@contextmanager
def _engine(settings: Settings) -> Iterator[Resources]:
    """Provide the resources of a search in this process."""
    ledger, store = Ledger(settings.ledger_url), make_store(settings, "chroma")
    try:
        models = make_embedder(settings), make_analyzer(), make_recognizer()
        yield Resources(
            Backend(settings, ledger, Blobs(settings.blobs_url), lambda _: store), *models
        )
    finally:
        store.close()
        ledger.close()


def _header(settings: Settings, seconds: float, rounds: int) -> str:
    return (
        f"{header(settings)}; about {seconds:.0f} s a measurement, {rounds} rounds of each"
        " throughput."
    )


def _throughput_table(results: Sequence[Throughput]) -> str:
    return table(
        (
            *("Documents of", "chunks each", "tokens a chunk", "documents × rounds"),
            *("chain, documents/s", "embedder alone, documents/s", "chain ÷ embedder"),
        ),
        [
            (
                each.kind.name,
                f"{each.chunks_per_document:.1f}",
                f"{each.tokens_per_chunk:.0f}",
                f"{each.documents} × {len(each.chain)}",
                f"{statistics.median(each.chain):.2f}",
                f"{statistics.median(each.alone):.2f}",
                f"{statistics.median(each.ratios):.0%}"
                f" ({min(each.ratios):.0%} to {max(each.ratios):.0%})",
            )
            for each in results
        ],
    )


def _latency_table(results: Sequence[Latency]) -> str:
    """Return the table of milliseconds at the server, of the sum of the parts, and of each part."""
    rows = []
    for each in results:
        for name, milliseconds in _series(each).items():
            p50, p95, p99 = (f"{p:.1f}" for p in percentiles(milliseconds))
            rows.append((each.situation, name, str(len(milliseconds)), p50, p95, p99))
    return table(("Search, ms", "", "n", "p50", "p95", "p99"), rows)


def _series(latency: Latency) -> dict[str, list[float]]:
    return {"at the server": latency.client, "sum of the parts": latency.parts} | {
        f"part: {stage}": took for stage, took in latency.stages.items()
    }


def _memory_table(results: Sequence[RoleMemory]) -> str:
    rows = [
        (
            each.role,
            str(len(each.megabytes)),
            f"{sum(each.megabytes):.0f}",
            ", ".join(f"{size:.0f}" for size in each.megabytes),
        )
        for each in sorted(results, key=lambda each: -sum(each.megabytes))
    ]
    total = f"{sum(sum(each.megabytes) for each in results):.0f}"
    count = str(sum(len(each.megabytes) for each in results))
    return table(
        ("Role", "processes", f"MB ({memory.unit()}) while ingesting", "each"),
        [*rows, ("all", count, total, "")],
    )


if __name__ == "__main__":
    main()

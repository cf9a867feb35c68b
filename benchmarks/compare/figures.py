"""The figures of one checkout in one round: a stack that starts, ingests, searches and ends."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.compare.checkouts import Checkout
from benchmarks.fresh_texts import FreshTexts
from benchmarks.private_stack import PrivateStack, private_stack
from benchmarks.speed import memory
from benchmarks.speed.ingestion import Ingestion
from benchmarks.speed.processor import seconds_by_role
from callslip.evals.client import JsonClient

GROUPS = {
    "command": "`callslip --help`",
    "start": "`callslip up` on an empty folder",
    "long": "ingestion of documents of several chunks",
    "short": "ingestion of documents of one chunk",
    "search": "searches at the API, one after the other",
    "memory": "all processes after the other measurements",
}

COLLECTION = "compare"
LONG, LONG_TOKENS = 8, 2500
SHORT, SHORT_TOKENS = 72, 300
QUERIES, WARM_UP = 80, 8
COMMANDS = 3


@dataclass(frozen=True)
class Work:
    """The texts of one round, the same for both checkouts."""

    warm_up: Sequence[str]
    long: Sequence[str]
    short: Sequence[str]
    queries: Sequence[str]


def work(texts: FreshTexts) -> Work:
    """Make the texts of a round."""
    return Work(
        [texts.document(SHORT_TOKENS) for _ in range(WARM_UP)],
        [texts.document(LONG_TOKENS) for _ in range(LONG)],
        [texts.document(SHORT_TOKENS) for _ in range(SHORT)],
        [texts.query() for _ in range(WARM_UP + QUERIES)],
    )


def measure(checkout: Checkout, work: Work, groups: Sequence[str]) -> dict[str, float]:
    """Measure the figures of the groups; of each figure less is better."""
    figures: dict[str, float] = {}
    if "command" in groups:
        figures["command: processor ms"] = statistics.median(
            _command(checkout) for _ in range(COMMANDS)
        )
    if set(groups) <= {"command"}:
        return figures
    began = time.perf_counter()
    with (
        private_stack(environ=checkout.environ, python=checkout.python) as stack,
        JsonClient(stack.run.api_url) as client,
    ):
        if "start" in groups:
            figures["start: s"] = time.perf_counter() - began
        figures |= _stack(stack, client, work, groups)
    return figures


def _stack(
    stack: PrivateStack, client: JsonClient, work: Work, groups: Sequence[str]
) -> dict[str, float]:
    client.post("/v1/collections", {"name": COLLECTION})
    figures: dict[str, float] = {}
    ingestion = Ingestion(client, COLLECTION)
    ingestion.run(work.warm_up)
    for name, documents in (("long", work.long), ("short", work.short)):
        if name in groups:
            before = _processor_seconds(stack)
            wall = ingestion.run(documents)
            processor = _processor_seconds(stack) - before
            figures[f"{name}: s/document"] = wall / len(documents)
            figures[f"{name}: processor s/document"] = processor / len(documents)
    if "search" in groups:
        for query in work.queries[:WARM_UP]:
            _search(client, query)
        before = _processor_seconds(stack)
        milliseconds = [_search(client, query) for query in work.queries[WARM_UP:]]
        processor = _processor_seconds(stack) - before
        figures["search: median ms"] = statistics.median(milliseconds)
        figures["search: processor ms"] = processor * 1000 / len(milliseconds)
    if "memory" in groups:
        roles = memory.by_role(stack.run)
        figures[f"memory: MB ({memory.unit()})"] = sum(sum(role.megabytes) for role in roles)
    return figures


def _search(client: JsonClient, query: str) -> float:
    """Return the milliseconds of a search."""
    began = time.perf_counter()
    client.post("/v1/search", {"collection": COLLECTION, "query": query, "top": 10})
    return (time.perf_counter() - began) * 1000


def _command(checkout: Checkout) -> float:
    """Return the milliseconds of processor time of a short command."""
    program = (
        "import resource, subprocess, sys;"
        " subprocess.run([sys.executable, '-m', 'callslip.cli', '--help'],"
        " check=True, stdout=subprocess.DEVNULL);"
        " used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        " print((used.ru_utime + used.ru_stime) * 1000)"
    )
    return float(checkout.run("-c", program))


def _processor_seconds(stack: PrivateStack) -> float:
    return sum(seconds_by_role(stack.run).values())

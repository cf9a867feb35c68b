"""Measure what a search at the API takes beyond its embedder and its store.

`python -m benchmarks.speed.searches` starts a separate installation, fills a collection with
generated chunks, and compares in turns: a search by an HTTP client at the API, and the same
question in this process by the embedder, both retrievers and the texts of ten hits alone. Then 16
clients ask at once, at the API and alone. Then one client asks while nothing is ingested and while
both cores ingest, in turns. No question is asked twice, so no cache has an answer.
"""

import argparse
import http.client
import json
import secrets
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from urllib.parse import urlsplit

import numpy as np
import psutil

from benchmarks.fresh_texts import FreshTexts
from benchmarks.private_stack import private_stack
from benchmarks.speed import pipeline
from benchmarks.speed.latency import ingesting
from benchmarks.stores.rows import Rows
from callslip.config.settings import Settings
from callslip.errors import CallslipError, EvaluationError
from callslip.evals.client import JsonClient
from callslip.evals.tables import header, table, tell
from callslip.models.e5.tokens import Tokenizer
from callslip.models.registry import make_analyzer, make_embedder
from callslip.retrieval.facets.vectors import FacetBuilder
from callslip.retrieval.query.filters import passages
from callslip.stores.contract import Store
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.base.database import Database
from callslip.stores.registry import make_store
from callslip.workers.supervision.runfile import RunFile

COLLECTION, TOP, WARM_UP = pipeline.COLLECTION, 10, 20

INGESTED = "ingested"
"""The collection of the documents that are ingested: the generated ones have no versions."""

INGESTED_TOKENS = 2500
POLL_SECONDS = 0.5

LEAST_SHOWN = 0.05
"""Milliseconds of processor time for each search, below which a part is left out."""

Ask = Callable[[str], object]


class ApiClient:
    """A client with one connection and hardly any time of its own."""

    def __init__(self, url: str) -> None:
        at = urlsplit(url)
        self._connection = http.client.HTTPConnection(at.hostname or "", at.port)

    def search(self, query: str) -> dict[str, float]:
        """Search at the API; return the milliseconds of each stage in the worker."""
        body = json.dumps({"collection": COLLECTION, "query": query, "top": TOP})
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", "/v1/search", body, headers)
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        if response.status != http.client.OK:
            raise EvaluationError(f"a search was answered with {response.status}")
        timings: dict[str, float] = answer["timings"]
        return timings


class Alone:
    """The embedder and the store in this process."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._store, self._pool = store, settings.search.pool
        self._embedder, self._analyzer = make_embedder(settings.for_questions()), make_analyzer()

    def search(self, query: str) -> None:
        """Embed the question, ask both retrievers, and read the texts of the best hits."""
        vector, terms = self._embedder.query(query), self._analyzer.analyze(query)
        hits = self._store.hybrid_query(
            COLLECTION, vector, terms, 2 * self._pool, passages(None), pool=self._pool
        )
        self._store.get_chunks(COLLECTION, [each.chunk_id for each in hits[:TOP]])


def main() -> None:
    """Measure and print Markdown; after a failure, print the reason and exit with 1."""
    options = _options()
    try:
        facets = {"CALLSLIP_FACETS__NAMES": ",".join(pipeline.FACETS)}
        with private_stack(environ=facets) as stack, JsonClient(stack.run.api_url) as client:
            questions = Questions()
            with closing(make_store(stack.settings, "chroma")) as store:
                fill(stack.settings, store, options.chunks)
                alone = Alone(stack.settings, store)
                print(header(stack.settings), end="\n\n")
                tell("One client")
                print(beyond(client.url, alone, questions, options.seconds), end="\n\n")
                tell(f"{options.clients} clients")
                print(throughput(stack.run, alone, questions, options), end="\n\n")
            tell("One client, while documents are ingested")
            print(under_load(client, stack.settings, questions, options))
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.searches", description=__doc__
    )
    parser.add_argument("--chunks", type=int, default=10_000, help="in the collection")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--clients", type=int, default=16, help="that ask at once")
    parser.add_argument("--rounds", type=int, default=3, help="of the turns")
    return parser.parse_args()


def fill(settings: Settings, store: Store, chunks: int) -> None:
    """Write generated chunks and the vectors of their facets."""
    embedder = make_embedder(settings)
    with closing(Ledger(settings.ledger_url)) as ledger:
        with closing(Database(settings.ledger_url)) as database:
            rows = Rows().chunks(chunks)
            pipeline.fill(ledger, database, store, embedder.model, rows, dated=False)
        record = ledger.collections.get(COLLECTION)
        FacetBuilder(ledger, store, embedder, 100).rebuild(record, "", pipeline.FACETS)


class Questions:
    """Questions of generated words, all different. Threads may share it."""

    def __init__(self) -> None:
        self._rows, self._lock = Rows(secrets.randbits(32)), threading.Lock()

    def query(self) -> str:
        """Return another question."""
        with self._lock:
            return self._rows.questions(1)[0].terms


def beyond(url: str, alone: Alone, questions: Questions, seconds: float) -> str:
    """Ask each question at the API and alone, in turns; return a table of milliseconds."""
    client = ApiClient(url)
    asks: list[tuple[str, Ask]] = [("API", client.search), ("alone", alone.search)]
    took: dict[str, list[float]] = {name: [] for name, _ in asks}
    stages: dict[str, list[float]] = {}
    for turn in _turns(questions, asks, seconds):
        question, order, counted = turn
        for name, ask in order:
            started = time.perf_counter()
            stages_of = ask(question)
            milliseconds = (time.perf_counter() - started) * 1000
            if not counted:
                continue
            took[name].append(milliseconds)
            for stage, each in stages_of.items() if isinstance(stages_of, dict) else ():
                stages.setdefault(stage, []).append(each)
    both = zip(took["API"], took["alone"], strict=True)
    rows = [
        ("at the API", took["API"]),
        ("embedder and store alone", took["alone"]),
        ("the difference of each question", [api - own for api, own in both]),
        *((f"stage: {stage}", each) for stage, each in stages.items()),
    ]
    return table(
        ("One client, ms", "n", "p50", "p95", "p99"),
        [(name, str(len(each)), *_percentiles(each)) for name, each in rows],
    )


def _turns(
    questions: Questions, asks: Sequence[tuple[str, Ask]], seconds: float
) -> Iterator[tuple[str, Sequence[tuple[str, Ask]], bool]]:
    """Iterate over new questions, each with an order; the first ones do not count."""
    until, turn = time.monotonic() + seconds, 0
    while turn < WARM_UP or time.monotonic() < until:
        yield questions.query(), asks if turn % 2 else asks[::-1], turn >= WARM_UP
        turn += 1


def throughput(
    run: RunFile, alone: Alone, questions: Questions, options: argparse.Namespace
) -> str:
    """Let clients ask at once, at the API and alone in turns; return a table."""
    rates: dict[str, list[float]] = {"API": [], "alone": []}
    took: dict[str, list[float]] = {name: [] for name in rates}
    spent: dict[str, Counter[str]] = {name: Counter() for name in rates}
    seconds = options.seconds / options.rounds
    asks: dict[str, Callable[[], Ask]] = {
        "API": lambda: ApiClient(run.api_url).search,
        "alone": lambda: alone.search,
    }
    with ThreadPoolExecutor(options.clients) as pool:
        for _ in range(options.rounds):
            for name, new in asks.items():
                before, started = _processor(run), time.monotonic()
                each = [new() for _ in range(options.clients)]
                times = _together(pool, each, questions, seconds)
                rates[name].append(len(times) / (time.monotonic() - started))
                spent[name].update(_processor(run))
                spent[name].subtract(before)
                took[name] += times
    ratios = [api / own for api, own in zip(rates["API"], rates["alone"], strict=True)]
    rows = [
        (
            name,
            f"{np.median(rates[name]):.1f}",
            " / ".join(_percentiles(times)),
            ", ".join(
                f"{role} {milliseconds:.1f}"
                for role, total in spent[name].most_common()
                if (milliseconds := total * 1000 / len(times)) >= LEAST_SHOWN
            ),
        )
        for name, times in took.items()
    ]
    title = f"{options.clients} clients"
    columns = (title, "searches/s", "ms p50 / p95 / p99", "processor ms of each search")
    spread = f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return table(columns, rows) + f"\n\nsearches/s at the API ÷ alone: {spread}"


def _processor(run: RunFile) -> dict[str, float]:
    """Return the seconds of processor time of each part of the stack, and of this process."""
    seconds = {"this process": time.process_time()}
    for name, part in run.parts.items():
        leader = psutil.Process(part.pid)
        times = [each.cpu_times() for each in (leader, *leader.children(recursive=True))]
        seconds[name] = sum(each.user + each.system for each in times)
    return seconds


def _together(
    pool: ThreadPoolExecutor, asks: Sequence[Ask], questions: Questions, seconds: float
) -> list[float]:
    """Return the milliseconds of the searches that began within `seconds`."""
    until = time.monotonic() + seconds

    def work(ask: Ask) -> list[float]:
        took: list[float] = []
        while time.monotonic() < until:
            question, started = questions.query(), time.perf_counter()
            ask(question)
            took.append((time.perf_counter() - started) * 1000)
        return took

    return [each for took in pool.map(work, asks) for each in took]


def under_load(
    client: JsonClient, settings: Settings, questions: Questions, options: argparse.Namespace
) -> str:
    """Ask while nothing is ingested and while documents are, in turns; return a table."""
    client.post("/v1/collections", {"name": INGESTED})
    texts = FreshTexts(Tokenizer(settings.models_dir))
    took: dict[str, list[float]] = {"idle": [], "while ingesting": []}
    ratios = []
    seconds = options.seconds / options.rounds
    for _ in range(options.rounds):
        p95s = {}
        for situation, times in took.items():
            busy = situation != "idle"
            with ingesting(client, texts, INGESTED, INGESTED_TOKENS) if busy else nullcontext():
                time.sleep(2 * busy)
                new = _alternately(ApiClient(client.url), questions, seconds)
            _settle(client)
            times += new
            p95s[situation] = float(np.percentile(new, 95))
        ratios.append(p95s["while ingesting"] / p95s["idle"])
    rows = [(name, str(len(each)), *_percentiles(each)) for name, each in took.items()]
    spread = f"p95 while ingesting ÷ idle: {np.median(ratios):.2f} ({min(ratios):.2f} to "
    spread += f"{max(ratios):.2f})"
    return table(("One client, ms", "n", "p50", "p95", "p99"), rows) + f"\n\n{spread}"


def _alternately(api: ApiClient, questions: Questions, seconds: float) -> list[float]:
    """Return the milliseconds of searches, one after the other."""
    for _ in range(WARM_UP):
        api.search(questions.query())
    took, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        question, started = questions.query(), time.perf_counter()
        api.search(question)
        took.append((time.perf_counter() - started) * 1000)
    return took


def _settle(client: JsonClient) -> None:
    """Wait until no document is queued."""
    path = f"/v1/collections/{INGESTED}/documents"
    while any(client.get(path, limit=1)["states"].get(state) for state in ("queued", "running")):
        time.sleep(POLL_SECONDS)


def _percentiles(milliseconds: Sequence[float]) -> tuple[str, str, str]:
    p50, p95, p99 = np.percentile(milliseconds, (50, 95, 99))
    return f"{p50:.1f}", f"{p95:.1f}", f"{p99:.1f}"


if __name__ == "__main__":
    main()

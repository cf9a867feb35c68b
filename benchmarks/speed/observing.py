"""The cost of logs, metrics and traces: `python -m benchmarks.speed.observing [--rounds N]`.

Two stacks run beside each other. One logs JSON at INFO, is scraped every few seconds and sends its
spans to a collector; the other logs text at WARNING, and nobody reads its metrics. Both get the
same number of searches and documents, in turns. The table has the rate of each, and the processor
time of all parts, which says more on a machine with other work. Counting cannot be switched off.
"""

import argparse
import multiprocessing
import statistics
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection

import httpx
import psutil

from benchmarks.fresh_texts import FreshTexts
from benchmarks.private_stack import PrivateStack, private_stack
from callslip.config.keys import PREFIX
from callslip.errors import CallslipError
from callslip.evals.client import JsonClient
from callslip.evals.tables import header, table, tell
from callslip.models.e5.tokens import Tokenizer

COLLECTION = "bench"

SEARCHES, DOCUMENTS, TOKENS, ROUNDS, CLIENTS = 200, 60, 300, 4, 2

SCRAPE_SECONDS = 5.0

POLL_SECONDS = 0.2


def main() -> None:
    """Measure and print; after a failure, print the reason and exit with 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.observing", description=__doc__
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="after a first one for warm-up")
    rounds = parser.parse_args().rounds
    try:
        with ExitStack() as parts:
            sides = {
                name: parts.enter_context(_side(environ))
                for name, environ in (
                    ("off", {f"{PREFIX}LOG__LEVEL": "WARNING"}),
                    (
                        "on",
                        {
                            f"{PREFIX}LOG__FORMAT": "json",
                            f"{PREFIX}TELEMETRY__OTLP_ENDPOINT": parts.enter_context(_collector()),
                        },
                    ),
                )
            }
            parts.enter_context(_scraped(sides["on"].stack))
            print(header(sides["on"].stack.settings), end="\n\n", flush=True)
            print(_table(_measured(sides, rounds)))
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


class Side:
    """A stack, its client, and what is done there."""

    def __init__(self, stack: PrivateStack, client: JsonClient) -> None:
        self.stack, self._client = stack, client
        self._texts = FreshTexts(Tokenizer(stack.settings.models_dir))
        self._path = f"/v1/collections/{COLLECTION}/documents"
        client.post("/v1/collections", {"name": COLLECTION})

    def search(self) -> int:
        """Search from several clients; the number of searches."""
        queries = [self._texts.query() for _ in range(SEARCHES)]

        def ask(query: str) -> None:
            self._client.post("/v1/search", {"collection": COLLECTION, "query": query, "top": 10})

        with ThreadPoolExecutor(CLIENTS) as pool:
            return len(list(pool.map(ask, queries)))

    def ingest(self) -> int:
        """Submit documents of one chunk and wait until all are live; their number."""
        texts = [self._texts.document(TOKENS) for _ in range(DOCUMENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(lambda text: self._client.post(self._path, {"text": text}), texts))
        states: dict[str, int] = {}
        while not states or states.get("live") != sum(states.values()):
            time.sleep(POLL_SECONDS)
            states = self._client.get(self._path, limit=1)["states"]
        return len(texts)

    def processor_seconds(self) -> float:
        """The processor time that all processes of the stack have used so far."""
        total = 0.0
        for part in self.stack.run.parts.values():
            with suppress(psutil.Error):
                leader = psutil.Process(part.pid)
                for process in (leader, *leader.children(recursive=True)):
                    with suppress(psutil.Error):
                        used = process.cpu_times()
                        total += used.user + used.system
        return total


Measured = dict[str, dict[str, list[tuple[float, float]]]]
"""By work and side: operations a second, and milliseconds of processor time for each."""


def _measured(sides: dict[str, Side], rounds: int) -> Measured:
    results: Measured = defaultdict(lambda: defaultdict(list))
    for number in range(rounds + 1):
        tell(f"Round {number} of {rounds}")
        order = list(sides) if number % 2 else list(reversed(sides))
        works: tuple[tuple[str, Callable[[Side], int]], ...] = (
            ("ingestion, documents", Side.ingest),
            ("searches", Side.search),
        )
        for work, act in works:
            for name in order:
                before, begun = sides[name].processor_seconds(), time.perf_counter()
                count = act(sides[name])
                seconds = time.perf_counter() - begun
                spent = sides[name].processor_seconds() - before
                if number:
                    results[work][name].append((count / seconds, 1000 * spent / count))
    return results


def _table(results: Measured) -> str:
    rows = []
    for work, by_side in results.items():
        off, on = (list(zip(*by_side[name], strict=True)) for name in ("off", "on"))
        for column, what in enumerate(("per second", "ms of processor time each")):
            ratios = [b / a for a, b in zip(off[column], on[column], strict=True)]
            rows.append(
                (
                    *(work, what, f"{_median(off[column]):.1f}", f"{_median(on[column]):.1f}"),
                    f"{_median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
                )
            )
    return table(("Work", "", "off", "on", "on ÷ off"), rows)


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


@contextmanager
def _side(environ: dict[str, str]) -> Iterator[Side]:
    with private_stack(environ=environ) as stack, JsonClient(stack.run.api_url) as client:
        yield Side(stack, client)


@contextmanager
def _scraped(stack: PrivateStack) -> Iterator[None]:
    """Read the metrics as Prometheus does."""
    ended = threading.Event()

    def scrape() -> None:
        with httpx.Client(base_url=stack.run.api_url, trust_env=False) as http:
            while not ended.wait(SCRAPE_SECONDS):
                with suppress(httpx.HTTPError):
                    http.get("/metrics")

    thread = threading.Thread(target=scrape)
    thread.start()
    yield
    ended.set()
    thread.join()


@contextmanager
def _collector() -> Iterator[str]:
    """A collector on loopback that takes spans and drops them; its URL."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_collect, args=(there,))
    process.start()
    yield f"http://127.0.0.1:{here.recv()}"
    process.terminate()
    process.join()


def _collect(parent: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Dropped)
    parent.send(server.server_port)
    server.serve_forever()


class _Dropped(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(httpx.codes.OK)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    main()

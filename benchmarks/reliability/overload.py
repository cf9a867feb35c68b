"""Measures a private stack at several times its sustainable rate of documents.

python -m benchmarks.reliability.overload [--times 3] [--seconds 60] [--rounds 3] [--soak SECONDS]

The sustainable pace is that of a closed loop, in which a few documents always wait. Then overload
and recovery alternate: in one documents arrive at `--times` that pace, whatever the server
responds; in the other none arrives and those that wait are ingested, which is the sustainable pace
of that moment. Searches go on at a low fixed rate. With `--soak` the overload lasts that long, and
the memory of each part is compared with that after a sixth of it.
"""

import argparse
import itertools
import re
import secrets
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import numpy as np
from sqlalchemy import create_engine, func, select

from benchmarks.fresh_texts import FreshTexts
from benchmarks.private_stack import PrivateStack, private_stack
from benchmarks.speed import memory
from benchmarks.speed.memory import RoleMemory
from callslip.errors import CallslipError
from callslip.evals.tables import header, table, tell
from callslip.models.e5.tokens import Tokenizer
from callslip.stores.ledger.base import schema

COLLECTION = "bench"
TOKENS = 300
WAITING = 16
"""The number of queued documents in the closed loop."""

SEARCHES_PER_SECOND = 2.0
WARM_UP = 20
"""Documents and searches before a measurement."""

CONNECTIONS = 48
POLL_SECONDS = 0.1
SAMPLE_SECONDS = 30.0
MADE = 200
"""The number of texts that are made; each document is one of them with other numbers."""

_NUMBER = re.compile(r"\([0-9a-f]{8}\)")


@dataclass
class Phase:
    """What happened within a part of the run."""

    name: str
    seconds: float = 0.0
    live: int = 0
    """Documents that became live."""
    backlog: int = 0
    """Queued documents at the end."""
    searches: list[float] = field(default_factory=list)
    """Milliseconds of each search."""
    failed_searches: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    """Responses to documents; 0 is none at all."""
    waits: list[float] = field(default_factory=list)
    """Milliseconds of each response to a document."""
    megabytes: float = 0.0
    """Memory of all parts at the end."""

    @property
    def pace(self) -> float:
        """Documents that became live per second."""
        return self.live / self.seconds


class Bench:
    """One stack with a collection, and what is sent to it."""

    def __init__(self, stack: PrivateStack, tokens: int) -> None:
        limits = httpx.Limits(max_connections=CONNECTIONS)
        self._http = httpx.Client(
            base_url=stack.run.api_url, timeout=120, trust_env=False, limits=limits
        )
        self._stack = stack
        self._engine = create_engine(stack.settings.ledger_url)
        self._texts = FreshTexts(Tokenizer(stack.settings.models_dir))
        self._made = [self._texts.document(tokens) for _ in range(MADE)]
        self._numbers = itertools.count()
        self._http.post("/v1/collections", json={"name": COLLECTION}).raise_for_status()

    def warm_up(self) -> None:
        """Ingest and search until every part has loaded what it needs."""
        for _ in range(WARM_UP):
            self._submit()
        while self.backlog():
            time.sleep(POLL_SECONDS)
        for _ in range(WARM_UP):
            self._search()

    def idle(self, seconds: float) -> Phase:
        """Search alone."""
        with self._measured("idle", searching=True) as phase:
            time.sleep(seconds)
        return phase

    def closed_loop(self, seconds: float) -> Phase:
        """Ingest with WAITING documents queued at any time."""
        self._feed(seconds / 6)
        with self._measured("closed loop", searching=False) as phase:
            self._feed(seconds)
        return phase

    def overload(self, seconds: float, rate: float, every: "Samples | None" = None) -> Phase:
        """Send `rate` documents per second, whatever the server responds."""
        with (
            self._measured("overload", searching=True) as phase,
            ThreadPoolExecutor(CONNECTIONS) as pool,
        ):
            begun = time.monotonic()
            for number in range(int(seconds * rate)):
                if every is not None:
                    every.take(time.monotonic() - begun, self._stack)
                time.sleep(max(0.0, begun + number / rate - time.monotonic()))
                pool.submit(self._send, phase)
        return phase

    def recovery(self, seconds: float) -> Phase:
        """Send no documents while those that wait are ingested."""
        with self._measured("recovery", searching=True) as phase:
            time.sleep(seconds)
        return phase

    def backlog(self) -> int:
        """The number of queued documents."""
        query = select(func.count()).where(schema.versions.c.state == "queued")
        with self._engine.connect() as connection:
            return connection.scalar(query) or 0

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
        self._engine.dispose()

    @contextmanager
    def _measured(self, name: str, *, searching: bool) -> Iterator[Phase]:
        phase, stop = Phase(name), threading.Event()
        with ThreadPoolExecutor(1) as pool:
            searches = pool.submit(self._search_until, stop, phase) if searching else None
            before, begun = time.time(), time.monotonic()
            try:
                yield phase
            finally:
                phase.seconds, after = time.monotonic() - begun, time.time()
                stop.set()
            if searches is not None:
                searches.result()
        query = select(func.count()).where(
            schema.versions.c.state == "live", schema.versions.c.finished_at.between(before, after)
        )
        with self._engine.connect() as connection:
            phase.live = connection.scalar(query) or 0
        phase.backlog = self.backlog()
        phase.megabytes = sum(sum(role.megabytes) for role in memory.by_role(self._stack.run))
        tell(_line(phase))

    def _feed(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            for _ in range(WAITING - self.backlog()):
                self._submit()
            time.sleep(POLL_SECONDS)

    def _submit(self) -> None:
        self._post().raise_for_status()

    def _post(self) -> httpx.Response:
        made = self._made[next(self._numbers) % MADE]
        text = _NUMBER.sub(lambda _: f"({secrets.token_hex(4)})", made)
        return self._http.post(f"/v1/collections/{COLLECTION}/documents", json={"text": text})

    def _send(self, phase: Phase) -> None:
        begun = time.perf_counter()
        try:
            phase.statuses[self._post().status_code] += 1
        except httpx.TransportError:
            phase.statuses[0] += 1
        phase.waits.append((time.perf_counter() - begun) * 1000)

    def _search_until(self, stop: threading.Event, phase: Phase) -> None:
        """Search at a fixed rate; each search that is late begins as soon as it can."""
        due = time.monotonic()
        while not stop.wait(max(0.0, due - time.monotonic())):
            begun = time.perf_counter()
            if self._search():
                phase.searches.append((time.perf_counter() - begun) * 1000)
            else:
                phase.failed_searches += 1
            due += 1 / SEARCHES_PER_SECOND

    def _search(self) -> bool:
        question = {"collection": COLLECTION, "query": self._texts.query(), "top": 10}
        try:
            return self._http.post("/v1/search", json=question).is_success
        except httpx.TransportError:
            return False


class Samples:
    """The memory of each part, every SAMPLE_SECONDS."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, list[RoleMemory]]] = []

    def take(self, seconds: float, stack: PrivateStack) -> None:
        """Take a sample if one is due, `seconds` after the begin."""
        if self.rows and seconds - self.rows[-1][0] < SAMPLE_SECONDS:
            return
        self.rows.append((seconds, memory.by_role(stack.run)))
        shown = ", ".join(f"{r.role} {sum(r.megabytes):.0f}" for r in self.rows[-1][1])
        tell(f"{seconds:.0f} s: {shown}")

    def growth(self) -> str:
        """The mean memory of the last sixth compared with that of the second sixth, by part."""
        whole = self.rows[-1][0]
        second = [row for at, row in self.rows if whole / 6 <= at < whole / 3]
        last = [row for at, row in self.rows if at >= whole * 5 / 6]
        rows = []
        for index, role in enumerate([*(each.role for each in self.rows[0][1]), "all"]):
            figures = [role]
            for of in (_all_memory, _anonymous):
                a, b = (float(np.mean([of(row, index) for row in rows])) for rows in (second, last))
                figures += [f"{a:.0f}", f"{b:.0f}", f"{b / a - 1:+.1%}" if a else "-"]
            rows.append(tuple(figures))
        head = ("part", "MB after a sixth", "at the end", "growth")
        return table((*head, "anonymous MB after a sixth", "at the end", "growth"), rows)


def _all_memory(row: list[RoleMemory], index: int) -> float:
    return sum(sum(role.megabytes) for role in _part(row, index))


def _anonymous(row: list[RoleMemory], index: int) -> float:
    return sum(role.anonymous for role in _part(row, index))


def _part(row: list[RoleMemory], index: int) -> list[RoleMemory]:
    return row if index == len(row) else row[index : index + 1]


def main() -> None:
    """Measure and print; after a failure, print the reason and exit with 1."""
    options = _options()
    try:
        tell("Starting a stack of its own")
        with private_stack() as stack:
            print(header(stack.settings), end="\n\n", flush=True)
            bench = Bench(stack, options.tokens)
            try:
                _measure(bench, options)
            finally:
                bench.close()
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def _measure(bench: Bench, options: argparse.Namespace) -> None:
    bench.warm_up()
    phases = [bench.idle(options.seconds), bench.closed_loop(options.seconds)]
    rate = options.times * phases[-1].pace
    if options.soak:
        samples = Samples()
        phases.append(bench.overload(options.soak, rate, samples))
        print(_shown(phases, rate), end="\n\n")
        print(samples.growth())
        return
    for _ in range(options.rounds):
        phases.append(bench.overload(options.seconds, rate))
        phases.append(bench.recovery(options.seconds))
    print(_shown(phases, rate), end="\n\n")
    print(_ratios(phases))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reliability.overload", description=__doc__
    )
    parser.add_argument("--times", type=float, default=3.0, help="the rate, of the sustainable one")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="of overload and recovery")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of each document")
    parser.add_argument("--soak", type=float, default=0.0, help="seconds of overload, for memory")
    return parser.parse_args()


def _shown(phases: list[Phase], rate: float) -> str:
    head = ("phase", "live/s", "search p50, ms", "p95", "n", "failed", "sent/s", "responses")
    rows = [
        (
            *(phase.name, f"{phase.pace:.2f}"),
            *(f"{_percentile(phase.searches, p):.0f}" for p in (50, 95)),
            *(str(len(phase.searches)), str(phase.failed_searches)),
            f"{len(phase.waits) / phase.seconds:.1f}",
            ", ".join(f"{status}: {n}" for status, n in sorted(phase.statuses.items())) or "-",
            f"{_percentile(phase.waits, 95):.0f}",
            *(str(phase.backlog), f"{phase.megabytes:.0f}"),
        )
        for phase in phases
    ]
    shown = table((*head, "their p95, ms", "queued at the end", "MB (PSS)"), rows)
    return f"{shown}\n\nOverload is {rate:.1f} documents per second."


def _ratios(phases: list[Phase]) -> str:
    """The pace under overload against that of the recovery after it, and searches against idle."""
    idle = _percentile(phases[0].searches, 95)
    rows = []
    for before, after in itertools.pairwise(phases):
        if before.name == "overload":
            p95s = [f"{_percentile(each.searches, 95) / idle:.2f}" for each in (before, after)]
            closed, recovery = before.pace / phases[1].pace, before.pace / after.pace
            rows.append((f"{closed:.0%}", f"{recovery:.0%}", *p95s))
    return table(
        (
            *("pace ÷ closed loop", "pace ÷ recovery"),
            *("search p95 ÷ idle", "the same while recovering"),
        ),
        rows,
    )


def _percentile(values: list[float], percent: float) -> float:
    return float(np.percentile(values, percent)) if values else float("nan")


def _line(phase: Phase) -> str:
    return (
        f"{phase.name}: {phase.pace:.2f} live/s, search p95"
        f" {_percentile(phase.searches, 95):.0f} ms, {dict(phase.statuses)},"
        f" {phase.backlog} queued, {phase.megabytes:.0f} MB"
    )


if __name__ == "__main__":
    main()

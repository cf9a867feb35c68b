"""The Celery app of the simulation: six steps that sleep, with real transactions of a ledger.

`simulate.py` starts its workers and hands over the settings in the environment variable VARIABLE.
"""

import json
import os
import random
import time
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Self

import redis
from celery import Celery, chain
from kombu.entity import Exchange, Queue
from sqlalchemy import text

from callslip.errors import TransientError
from callslip.stores.ledger.base.database import Database

VARIABLE = "CALLSLIP_SIMULATION"
QUEUE, STEPS = "ingest", 6

SENT, ENDED, WRITES = "sent", "ended", "writes"
"""Keys in the broker: the documents sent, their ends, the seconds of each step's writes."""


@dataclass(frozen=True)
class Simulation:
    """What the workers do for a document."""

    broker: str
    ledger: str
    sleep: float
    """Seconds in all steps together, which no other worker uses."""
    transactions: int
    """In all steps together."""
    hold: float
    """Seconds that each transaction sleeps while it has the write lock."""
    documents: int = 0

    def environ(self) -> dict[str, str]:
        """The environment variable of a worker."""
        return {VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def of_environ(cls) -> Self:
        """The settings that `environ` has put into the environment."""
        return cls(**json.loads(os.environ[VARIABLE]))


app = Celery("capacity")
if VARIABLE in os.environ:
    app.conf.broker_url = Simulation.of_environ().broker
app.conf.update(  # as workers/app.py sets them
    task_queues=[Queue(QUEUE, Exchange(QUEUE), routing_key=QUEUE)],  # type: ignore[no-untyped-call]
    task_default_queue=QUEUE,
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
    broker_connection_retry_on_startup=True,
)


@cache
def settings() -> Simulation:
    """The settings that the environment has."""
    return Simulation.of_environ()


@cache
def database() -> Database:
    """The ledger of this process."""
    return Database(settings().ledger)


@cache
def broker() -> redis.Redis:
    """The client of the broker of this process."""
    return redis.Redis.from_url(settings().broker)


def prepare(simulation: Simulation) -> None:
    """Make the ledger's table with a row for each document."""
    ledger = Database(simulation.ledger)
    with ledger.writing() as connection:
        connection.execute(text("DROP TABLE IF EXISTS simulated"))
        connection.execute(text("CREATE TABLE simulated (id INTEGER PRIMARY KEY, writes INTEGER)"))
        rows = [{"id": number} for number in range(simulation.documents)]
        connection.execute(text("INSERT INTO simulated VALUES (:id, 0)"), rows)
    ledger.close()


def begin(window: int) -> None:
    """Send as many documents as may be on their way, each at some step, as in a long run."""
    for _ in range(window):
        _send_next(random.randrange(STEPS))  # noqa: S311 - no secret


def _send_next(first: int = 0) -> None:
    """Send the next document that has not been sent, as the ledger's fair queue does."""
    number = int(broker().incr(SENT)) - 1
    if number < settings().documents:
        chain(*(step.si(number, index) for index in range(first, STEPS))).apply_async()


@app.task(name="capacity.step")  # type: ignore[untyped-decorator]
def step(document: int, index: int) -> None:
    """Claim the step in the ledger, sleep, and record the end; send a document after the last."""
    simulation = settings()
    count = len(range(index, simulation.transactions, STEPS))  # their sum is `transactions`
    writes = [partial(_write, document, simulation.hold)] * count
    took = sum(write() for write in writes[: count // 2])
    time.sleep(simulation.sleep / STEPS * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
    took += sum(write() for write in writes[count // 2 :])
    broker().rpush(WRITES, took)
    if index == STEPS - 1:
        broker().rpush(ENDED, time.time())
        _send_next()


def _write(document: int, hold: float) -> float:
    """Commit a transaction; return the seconds from the write lock to the end of the commit."""
    while True:
        try:
            with database().writing() as connection:
                began = time.perf_counter()
                connection.execute(
                    text("UPDATE simulated SET writes = writes + 1 WHERE id = :id"),
                    {"id": document},
                )
                time.sleep(hold)
            return time.perf_counter() - began
        except TransientError:  # SQLite's lock was not to be had in time: a worker tries again
            continue

"""Counts what a document costs the ledger and the broker of a whole stack, without an embedder.

`python -m benchmarks.capacity.count postgresql+psycopg://…`, with an empty database. What the idle
stack does in the same time is subtracted.
"""

import argparse
import sys
import time
from dataclasses import dataclass

import redis
from pydantic import SecretStr
from sqlalchemy import Engine, create_engine, text

from benchmarks.compare.figures import COLLECTION, LONG_TOKENS, SHORT_TOKENS
from benchmarks.fresh_texts import FreshTexts
from benchmarks.private_stack import private_stack
from benchmarks.speed.ingestion import Ingestion
from benchmarks.speed.processor import seconds_by_role, spent
from callslip.config.keys import PREFIX
from callslip.errors import CallslipError
from callslip.evals.client import JsonClient
from callslip.evals.tables import table, tell
from callslip.models.e5.tokens import Tokenizer

WARM_UP, SHORT, LONG, IDLE_SECONDS = 8, 24, 8, 10.0

STATISTICS_SECONDS = 1.5
"""PostgreSQL's processes report what they did at most once a second."""


@dataclass(frozen=True)
class Reading:
    """Counters at one time."""

    time: float
    counts: dict[str, float]

    def since(self, other: "Reading") -> "Reading":
        """The difference of two readings."""
        counts = {name: count - other.counts[name] for name, count in self.counts.items()}
        return Reading(self.time - other.time, counts)


def main() -> None:
    """Count and print a table; after a failure, print the reason and exit with 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.capacity.count", description=__doc__
    )
    parser.add_argument("ledger", metavar="URL", help="an empty PostgreSQL database")
    url = parser.parse_args().ledger
    environ = {f"{PREFIX}LEDGER__URL": url, f"{PREFIX}EMBEDDER__KIND": "none"}
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with private_stack(environ=environ) as stack, JsonClient(stack.run.api_url) as client:
            texts = FreshTexts(Tokenizer(stack.settings.models_dir))
            client.post("/v1/collections", {"name": COLLECTION})
            ingestion = Ingestion(client, COLLECTION)
            ingestion.run([texts.document(SHORT_TOKENS) for _ in range(WARM_UP)])
            broker = redis.Redis.from_url(_shown(stack.settings.broker.url))

            def read() -> Reading:
                return _read(engine, broker, seconds_by_role(stack.run))

            tell("Idle")
            before = read()
            time.sleep(IDLE_SECONDS)
            idle = read().since(before)
            columns = []
            for tokens, count in ((SHORT_TOKENS, SHORT), (LONG_TOKENS, LONG)):
                tell(f"{count} documents of {tokens} tokens")
                documents = [texts.document(tokens) for _ in range(count)]
                before = read()
                ingestion.run(documents)
                columns.append(_cost(read().since(before), idle, count))
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")
    rows = [(name, *(f"{column[name]:.4g}" for column in columns)) for name in columns[0]]
    print(table(("for a document", f"{SHORT_TOKENS} tokens", f"{LONG_TOKENS} tokens"), rows))


def _shown(url: SecretStr | str | None) -> str:
    return url.get_secret_value() if isinstance(url, SecretStr) else str(url)


def _read(engine: Engine, broker: redis.Redis, processor: dict[str, float]) -> Reading:
    with engine.connect() as connection:
        number = connection.scalar(text("SELECT pg_current_xact_id()::text::bigint"))
        now = time.time()
        commands = sum(each["calls"] for each in broker.info("commandstats").values())
        used = broker.info("cpu")
        time.sleep(STATISTICS_SECONDS)
        commits, active = connection.execute(
            text(
                "SELECT xact_commit, active_time FROM pg_stat_database"
                " WHERE datname = current_database()"
            )
        ).one()
    counts = {
        "writing transactions": float(number or 0),
        "all transactions": float(commits),
        "ms of PostgreSQL": float(active),
        "commands of Valkey": float(commands),
        "ms of Valkey": (used["used_cpu_user"] + used["used_cpu_sys"]) * 1000,
    }
    return Reading(now, counts | {f"processor ms of {r}": s * 1000 for r, s in processor.items()})


def _cost(busy: Reading, idle: Reading, documents: int) -> dict[str, float]:
    share = busy.time / idle.time
    expected = {name: count * share for name, count in idle.counts.items()}
    return spent(expected, busy.counts, documents)


if __name__ == "__main__":
    main()

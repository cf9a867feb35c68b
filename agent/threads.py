"""Conversations: LangGraph's checkpointer keeps their turns, the ledger knows whose they are."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from agent.state import Turn
from callslip.errors import SettingsError, StoreDown, ThreadNotFound
from stores.ledger.conversations import ConversationRecord, Conversations

BUSY_SECONDS = 30.0


_OLDER = (
    "DELETE FROM writes WHERE thread_id = :thread AND checkpoint_id <"
    " (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread)",
    "DELETE FROM checkpoints WHERE thread_id = :thread AND checkpoint_id <"
    " (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread)",
)
"""States of a conversation before its newest; their ids grow with time."""


@contextmanager
def reaching() -> Iterator[None]:
    """StoreDown where the checkpointer's database is locked or lost."""
    try:
        yield
    except Exception as error:
        postgresql = type(error).__module__.partition(".")[0] in ("psycopg", "psycopg_pool")
        if not postgresql and not isinstance(error, sqlite3.OperationalError):
            raise
        raise StoreDown(
            f"the database of conversations does not answer: {type(error).__name__}"
        ) from error


class Threads:
    """The conversations of every collection and tenant, each apart from the others."""

    def __init__(self, saver: BaseCheckpointSaver[Any], conversations: Conversations) -> None:
        self.saver = saver
        self._conversations = conversations

    def open(self, collection: str, tenant: str, thread_id: str) -> str:
        """What the checkpointer knows a conversation by; it is made where it is missing."""
        return self._conversations.open(collection, tenant, thread_id).key

    @reaching()
    def settle(self, collection: str, tenant: str, thread_id: str, key: str) -> None:
        """Keep the newest state of a conversation, and none where it is forgotten by now.

        Each state holds all turns: with the older ones a conversation would grow with its square.
        """
        try:
            there = self._conversations.get(collection, tenant, thread_id).key == key
        except ThreadNotFound:
            there = False
        if there:
            self.saver.prune([key])
        else:
            self.saver.delete_thread(key)

    @reaching()
    def turns(
        self, collection: str, tenant: str, thread_id: str
    ) -> tuple[ConversationRecord, list[Turn]]:
        """A conversation and its newest turns, oldest first; ThreadNotFound."""
        found = self._conversations.get(collection, tenant, thread_id)
        kept = self.saver.get({"configurable": {"thread_id": found.key}})
        return found, list(kept["channel_values"].get("turns", [])) if kept else []

    @reaching()
    def forget(self, collection: str, tenant: str, thread_id: str) -> None:
        """Delete a conversation with all that was said in it; ThreadNotFound."""
        self._drop([self._conversations.get(collection, tenant, thread_id).key])

    @reaching()
    def trim(self, before: float) -> int:
        """Forget those not asked since, and those whose collection or tenant is gone."""
        trimmed = 0
        while keys := self._conversations.stale(before):
            self._drop(keys)
            trimmed += len(keys)
        return trimmed

    def _drop(self, keys: list[str]) -> None:
        for key in keys:
            self.saver.delete_thread(key)
        self._conversations.drop(keys)


class _SqliteSaver(SqliteSaver):
    """The checkpointer in SQLite, which forgets older states as the one in PostgreSQL does."""

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Forget all states of these conversations but the newest; there are no delta channels."""
        if strategy != "keep_latest":
            raise NotImplementedError(strategy)
        for thread_id in thread_ids:
            with self.cursor() as cursor:
                for statement in _OLDER:
                    cursor.execute(statement, {"thread": thread_id})


def make_saver(ledger_url: str, folder: Path) -> BaseCheckpointSaver[Any]:
    """Beside the ledger: in the same PostgreSQL, else in an SQLite file of this folder.

    What is read back is plain values only. Raises SettingsError where PostgreSQL's part is missing.
    """
    plain = JsonPlusSerializer(allowed_msgpack_modules=None)
    if not ledger_url.startswith("postgresql"):
        folder.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            folder / "conversations.db", timeout=BUSY_SECONDS, check_same_thread=False
        )
        connection.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
        saver = _SqliteSaver(connection, serde=plain)
        saver.setup()
        return saver
    try:
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool
    except ImportError as error:
        raise SettingsError(
            "conversations in PostgreSQL need the extra `postgresql`",
            hint="Install Callslip with it: pip install 'callslip[postgresql]'.",
        ) from error
    pool = ConnectionPool(
        ledger_url.replace("postgresql+psycopg://", "postgresql://"),
        min_size=1,
        max_size=8,
        open=True,
        kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
    )
    shared = PostgresSaver(pool, serde=plain)  # type: ignore[arg-type]
    shared.setup()
    return shared

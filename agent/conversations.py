"""Conversations: LangGraph's checkpointer stores the turns, the ledger stores the owners."""

import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from callslip.agent.state import Turn
from callslip.errors import SettingsError, ThreadNotFound
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.answers.conversations import ConversationRecord, Conversations
from callslip.stores.ledger.base.database import BUSY_SECONDS
from callslip.stores.ledger.base.driver_errors import translated
from callslip.stores.ledger.migrations.history import CONVERSATIONS, upgrade_url

_OLDER = (
    "DELETE FROM writes WHERE thread_id = :thread AND checkpoint_id <"
    " (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread)",
    "DELETE FROM checkpoints WHERE thread_id = :thread AND checkpoint_id <"
    " (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = :thread)",
)
"""Statements that delete all states of a conversation but the newest; state ids grow with time."""


reaching = partial(translated, CONVERSATIONS.subject)
"""A context manager that translates errors of the checkpointer's database.

They become StoreDown or LedgerError.
"""


class Threads:
    """The conversations of all collections and tenants, separated by collection and tenant."""

    def __init__(self, saver: BaseCheckpointSaver[Any], conversations: Conversations) -> None:
        self.saver = saver
        self._conversations = conversations

    def over(self, ledger: Ledger) -> "Threads":
        """The conversations that a ledger has, with the same turns."""
        return Threads(self.saver, ledger.conversations)

    def open(self, collection: str, tenant: str, thread_id: str) -> str:
        """Return the checkpointer's key of a conversation; create the conversation if needed."""
        return self._conversations.open(collection, tenant, thread_id).key

    @reaching()
    def settle(self, collection: str, tenant: str, thread_id: str, key: str) -> None:
        """Keep only the newest state of a conversation, or none if it was deleted meanwhile.

        Each state has all turns, so the size of all states would grow quadratically.
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
        """Return a conversation and its newest turns, oldest first.

        Raises ThreadNotFound if the conversation does not exist.
        """
        record = self._conversations.get(collection, tenant, thread_id)
        checkpoint = self.saver.get(_config(record.key))
        return record, list(checkpoint["channel_values"].get("turns", [])) if checkpoint else []

    @reaching()
    def state(self, key: str) -> bytes | None:
        """The newest state of a conversation as bytes; None if it has none."""
        newest = self.saver.get_tuple(_config(key))
        if newest is None:
            return None
        kind, content = self.saver.serde.dumps_typed([newest.checkpoint, newest.metadata])
        return kind.encode() + b"\0" + content

    @reaching()
    def put_state(self, key: str, state: bytes) -> None:
        """Store a state of `state`, of the checkpointer of either kind of database."""
        kind, _, content = state.partition(b"\0")
        checkpoint, metadata = self.saver.serde.loads_typed((kind.decode(), content))
        self.saver.put(_config(key), checkpoint, metadata, checkpoint["channel_versions"])

    @reaching()
    def trace_ids(self, key: str) -> list[str]:
        """The searches of a conversation's turns."""
        checkpoint = self.saver.get(_config(key))
        turns = checkpoint["channel_values"].get("turns", []) if checkpoint else []
        return [turn["trace_id"] for turn in turns]

    @reaching()
    def drop(self, keys: Sequence[str]) -> None:
        """Delete conversations by their keys."""
        for key in keys:
            self.saver.delete_thread(key)
        self._conversations.drop(keys)

    @reaching()
    def compact(self) -> None:
        """Rewrite SQLite's file, so that nothing of deleted conversations remains in it."""
        if isinstance(self.saver, SqliteSaver):
            self.saver.conn.execute("VACUUM")
            self.saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the connections of the checkpointer."""
        self.saver.conn.close()  # type: ignore[attr-defined]  # both kinds have one

    @reaching()
    def forget(self, collection: str, tenant: str, thread_id: str) -> None:
        """Delete a conversation with its questions and answers.

        Raises ThreadNotFound if the conversation does not exist.
        """
        self.drop([self._conversations.get(collection, tenant, thread_id).key])

    @reaching()
    def trim(self, before: float) -> int:
        """Delete conversations that are idle since `before`, or whose collection or tenant is gone.

        `before` is in seconds since 1970. Returns the number of deleted conversations.
        """
        trimmed = 0
        while keys := self._conversations.stale(before):
            self.drop(keys)
            trimmed += len(keys)
        return trimmed


def _config(key: str) -> RunnableConfig:
    return {"configurable": {"thread_id": key, "checkpoint_ns": ""}}


class _SqliteSaver(SqliteSaver):
    """The SQLite checkpointer with `prune`, which PostgreSQL's checkpointer already has."""

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all states of these conversations but the newest.

        No state needs an older one, because the graph has no delta channels.
        """
        if strategy != "keep_latest":
            raise NotImplementedError(strategy)
        for thread_id in thread_ids:
            with self.cursor() as cursor:
                for statement in _OLDER:
                    cursor.execute(statement, {"thread": thread_id})


def make_saver(ledger_url: str, folder: Path) -> BaseCheckpointSaver[Any]:
    """Create the checkpointer in the ledger's PostgreSQL, else in an SQLite file in `folder`.

    Its tables are migrated to the newest revision. It deserializes plain values only. Raises
    SettingsError if the PostgreSQL package is missing, LedgerError if the database is damaged.
    """
    plain = JsonPlusSerializer(allowed_msgpack_modules=None)
    if not ledger_url.startswith("postgresql"):
        file = folder / "conversations.db"
        upgrade_url(f"sqlite:///{file}", CONVERSATIONS)
        connection = sqlite3.connect(file, timeout=BUSY_SECONDS, check_same_thread=False)
        connection.execute("PRAGMA secure_delete = ON")  # overwrite deleted content
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
    upgrade_url(ledger_url, CONVERSATIONS)
    pool = ConnectionPool(
        ledger_url.replace("postgresql+psycopg://", "postgresql://"),
        min_size=1,
        max_size=8,
        open=True,
        kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
    )
    shared = PostgresSaver(pool, serde=plain)  # type: ignore[arg-type]
    shared.setup()  # apply the table changes of newer checkpointer versions
    return shared

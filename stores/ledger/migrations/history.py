"""Upgrades a database to the newest revision of its history."""

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    func,
    insert,
    inspect,
    select,
)

from callslip.errors import LedgerError, SettingsError
from callslip.stores.ledger.base import (
    access_tables,
    answer_tables,
    memory_tables,
    outbox_tables,
    schema,
)
from callslip.stores.ledger.base.database import Database

log = logging.getLogger(__name__)

_FOLDER = Path(__file__).parent

ADVISORY_LOCK = 0x_CA11_5119
"""PostgreSQL's advisory lock while a revision runs; on SQLite the write lock is enough."""

NO_TABLES, NO_NUMBER = -1, 0
"""In place of a revision: an empty database, and one from before revisions were numbered."""


@dataclass(frozen=True)
class History:
    """The revisions of one database.

    `folder` is Alembic's script folder with `env.py` and `versions`, `newest` the number of the
    last revision, and `tables` has the tables of a database at `newest`. `create` makes all of them
    in an empty database; without `create`, an empty database runs every revision. `check` examines
    a database that has the table `check_table`, and raises an error if it cannot be used.
    """

    name: str
    subject: str
    folder: Path
    newest: int
    tables: frozenset[str] = frozenset()
    create: Callable[[Connection], None] | None = None
    check: Callable[[Connection], None] | None = None
    check_table: str = ""

    @property
    def version_table(self) -> Table:
        """The table of one row that records the revision, as Alembic makes and reads it."""
        name = f"{self.name}_revision"
        key = PrimaryKeyConstraint("version_num", name=f"{name}_pkc")
        return Table(name, MetaData(), Column("version_num", String(32), nullable=False), key)

    def revision(self, connection: Connection) -> int:
        """The revision of a database, or NO_TABLES or NO_NUMBER.

        Raises LedgerError if the revision is newer than this Callslip, or if a table is missing.
        """
        present = set(inspect(connection).get_table_names())
        table = self.version_table
        if table.name not in present:
            if not present & self.tables:
                return NO_TABLES
            self._check(connection, present)
            return NO_NUMBER
        recorded = connection.scalar(select(table.c.version_num)) or "0"
        if not recorded.isdecimal() or int(recorded) > self.newest:
            raise LedgerError(
                f"{self.subject} has revision {recorded},"
                f" this Callslip knows revisions up to {self.newest}",
                hint="It was opened by a newer Callslip: install that one or a later one, or point"
                " ledger.url (data_dir) elsewhere.",
            )
        if int(recorded) == self.newest and (missing := sorted(self.tables - present)):
            raise LedgerError(f"{self.subject} is damaged: it has no table {missing[0]!r}")
        self._check(connection, present)
        return int(recorded)

    def _check(self, connection: Connection, present: set[str]) -> None:
        if self.check is not None and self.check_table in present:
            self.check(connection)


def upgrade(database: Database, history: History) -> None:
    """Upgrade a database to the newest revision. Idempotent, and safe for many processes at once.

    Each revision is one transaction under a lock, so that a killed upgrade continues after its last
    complete revision. Raises LedgerError or SettingsError if the database cannot be upgraded,
    StoreDown if the database does not answer.
    """
    with database.snapshot() as connection:
        revision = history.revision(connection)
    while revision != history.newest:
        with database.writing() as connection:
            if not database.is_sqlite:
                connection.execute(select(func.pg_advisory_xact_lock(ADVISORY_LOCK)))
            revision = history.revision(connection)  # another process may have been first
            if revision != history.newest:
                revision = _advance(connection, history, revision)


def upgrade_url(url: str, history: History) -> None:
    """As `upgrade`, over a separate connection."""
    with closing(Database(url, history.subject)) as database:
        upgrade(database, history)


def _advance(connection: Connection, history: History, revision: int) -> int:
    """Run the next revision, and return the number that the database has then."""
    if revision == NO_TABLES and history.create is not None:
        history.create(connection)
        table = history.version_table
        table.create(connection)
        connection.execute(insert(table).values(version_num=f"{history.newest:04}"))
        return history.newest
    following = max(revision, 0) + 1
    if revision != NO_TABLES:
        log.info("%s is brought to revision %d of %d", history.subject, following, history.newest)
    _run(connection, history, f"{following:04}")
    return following


def _run(connection: Connection, history: History, revision: str) -> None:
    logging.getLogger("alembic").setLevel(logging.WARNING)  # before the import, which logs already
    from alembic import command  # takes .2 s, and most starts have nothing to do
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(history.folder).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = history.version_table.name
    command.upgrade(config, revision)


(_METADATA,) = {
    each.metadata for each in (schema, outbox_tables, memory_tables, access_tables, answer_tables)
}
"""The metadata of all tables of the ledger, to which each module adds its tables at its import."""


def _create_ledger(connection: Connection) -> None:
    _METADATA.create_all(connection)
    connection.execute(insert(schema.about).values(schema_version=schema.SCHEMA_VERSION))


def _check_ledger(connection: Connection) -> None:
    """Raise SettingsError if the schema version is another one: older commits check only this."""
    recorded = connection.scalar(select(schema.about.c.schema_version))
    if recorded not in (None, schema.SCHEMA_VERSION):
        raise SettingsError(
            f"the ledger has schema version {recorded},"
            f" this Callslip works with {schema.SCHEMA_VERSION}",
            hint="Run the Callslip version that made it, or point ledger.url elsewhere.",
        )


LEDGER = History(
    name="ledger",
    subject="the ledger",
    folder=_FOLDER / "ledger",
    newest=7,
    tables=frozenset(_METADATA.tables),
    create=_create_ledger,
    check=_check_ledger,
    check_table=schema.about.name,
)

CONVERSATIONS = History(
    name="conversations",
    subject="the database of conversations",
    folder=_FOLDER / "conversations",
    newest=1,
    tables=frozenset({"checkpoints"}),
)

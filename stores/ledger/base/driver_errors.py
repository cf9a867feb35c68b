"""Translates errors of the database drivers: permanent damage, or a temporary outage."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from callslip.errors import CallslipError, LedgerError, StoreDown, StoreReadOnly

_DAMAGED_FILE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_NO_SUCH_PART = ("no such table", "no such column", "has no column named")

_DAMAGED_STATES = {
    "42P01",  # undefined table
    "42703",  # undefined column
    "XX001",  # data corrupted
    "XX002",  # index corrupted
}
"""SQLSTATEs of PostgreSQL that a retry cannot resolve."""


@contextmanager
def translated(subject: str) -> Iterator[None]:
    """Raise a driver's error as LedgerError (permanent damage) or StoreDown (temporary outage).

    `subject` names the database at the start of the sentence, such as "the ledger". Errors of a
    statement, such as a violated constraint, are not translated.
    """
    try:
        yield
    except IntegrityError:
        raise
    except DBAPIError as error:
        if error.orig is not None and (damage := _damage(error.orig)):
            raise _damaged(subject, damage) from error
        if isinstance(error, OperationalError):
            raise _down(subject, error.orig) from error
        if error.connection_invalidated:
            raise StoreDown(f"{subject} closed the connection") from error
        raise
    except Exception as error:
        if damage := _damage(error):
            raise _damaged(subject, damage) from error
        if isinstance(error, sqlite3.OperationalError) or _is_postgresql(error):
            raise _down(subject, error) from error
        raise


def _damage(error: BaseException) -> str:
    """The driver's message if the error means damage, else an empty string."""
    message = str(error).partition("\n")[0]
    if isinstance(error, sqlite3.Error):
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF  # extended codes use the higher bits
        missing = any(part in message for part in _NO_SUCH_PART)
        return message if primary in _DAMAGED_FILE or missing else ""
    return message if getattr(error, "sqlstate", None) in _DAMAGED_STATES else ""


def _damaged(subject: str, damage: str) -> CallslipError:
    return LedgerError(f"{subject} is damaged: {damage}")


def _down(subject: str, error: BaseException | None) -> CallslipError:
    if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
        return StoreReadOnly(f"{subject} takes nothing: its disk is full")
    return StoreDown(f"{subject} does not answer: {type(error).__name__}")


def _is_postgresql(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in ("psycopg", "psycopg_pool")

"""Secrets that all processes of the API share: that of sessions, and links that log in once."""

import hashlib
import secrets
import time
from contextlib import suppress

from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from callslip.stores.ledger.base import access_tables
from callslip.stores.ledger.base.database import Database

_S = access_tables.secrets.c

SESSION = "session"


class Secrets:
    """Makes and reads secrets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def session(self) -> str:
        """The secret that signs sessions; it is made at the first call."""
        query = select(_S.value).where(_S.name == SESSION)
        with self._database.reading() as connection:
            known = connection.scalar(query)
        if known is None:
            with suppress(IntegrityError):  # another process has just made it
                self._put(SESSION, secrets.token_urlsafe(32), None)
            with self._database.reading() as connection:
                known = connection.scalar(query)
        return str(known)

    def login_code(self, key_id: str, seconds: float) -> str:
        """Make a code that stands once for a key, for so many seconds."""
        code, now = secrets.token_urlsafe(32), time.time()
        with self._database.writing() as connection:
            connection.execute(delete(access_tables.secrets).where(_S.expires_at < now))
        self._put(_name(code), key_id, now + seconds)
        return code

    def spend(self, code: str) -> str | None:
        """The id of the key that a code stands for, None if it is used, expired or unknown."""
        with self._database.writing() as connection:
            name = _name(code)
            row = connection.execute(
                select(_S.value, _S.expires_at).where(_S.name == name).with_for_update()
            ).one_or_none()
            connection.execute(delete(access_tables.secrets).where(_S.name == name))
        return row.value if row and row.expires_at > time.time() else None

    def _put(self, name: str, value: str, expires_at: float | None) -> None:
        with self._database.writing() as connection:
            connection.execute(
                insert(access_tables.secrets).values(name=name, value=value, expires_at=expires_at)
            )


def _name(code: str) -> str:
    return f"login:{hashlib.sha256(code.encode()).hexdigest()}"

"""API keys: made, found by their text, rotated and revoked.

A key is `callslip_ID_SECRET`, and SECRET has 256 random bits. The ledger stores SHA-256 of the key:
nobody can guess 256 random bits, so a slow hash with a salt, as passwords need it, would protect
nothing more and would cost each request its time. The id finds the row; the hashes are compared in
constant time.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, exists, insert, select, update

from callslip.callers import Caller, Permission
from callslip.errors import Conflict, KeyNotFound
from callslip.stores.ledger.base.access_tables import api_keys
from callslip.stores.ledger.base.database import Database

_K = api_keys.c

_KEY = re.compile(r"callslip_(?P<id>[0-9a-f]{12})_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True)
class KeyLimits:
    """The limits of all keys of one name; None means no limit. Days are those of UTC."""

    requests_per_minute: int | None = None
    documents_per_day: int | None = None
    bytes_per_day: int | None = None
    tokens_per_day: int | None = None

    @property
    def per_day(self) -> bool:
        """Whether any limit is one of a day."""
        return (self.documents_per_day, self.bytes_per_day, self.tokens_per_day) != (None,) * 3


@dataclass(frozen=True)
class KeyGrant:
    """What a key permits: `collections` and `tenants` None means all."""

    permissions: frozenset[Permission]
    collections: frozenset[str] | None = None
    tenants: frozenset[str] | None = None
    user: str | None = None
    groups: frozenset[str] = frozenset()
    limits: KeyLimits = KeyLimits()


@dataclass(frozen=True)
class ApiKey:
    """A key without its text. Times are UTC seconds since 1970."""

    key_id: str
    name: str
    grant: KeyGrant
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    last_used_at: float | None

    def is_valid(self, now: float) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    @property
    def caller(self) -> Caller:
        """The caller of requests with this key."""
        grant = self.grant
        return Caller(
            self.name,
            "key",
            grant.permissions,
            grant.collections,
            grant.tenants,
            grant.user,
            grant.groups,
            self.key_id,
        )


class ApiKeys:
    """Stores keys by the hashes of their texts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self, name: str, grant: KeyGrant, expires_at: float | None = None
    ) -> tuple[str, ApiKey]:
        """Make a key, and return its text, which cannot be read again, with its record.

        Raises Conflict if a key of this name is valid.
        """
        with self._database.writing() as connection:
            now = time.time()
            if any(key.is_valid(now) for key in self._named(connection, name)):
                raise Conflict(
                    f"there is a key {name!r}",
                    hint="Choose another name, or `callslip keys rotate` it.",
                )
            return self._insert(connection, name, grant, expires_at)

    def rotate(self, name: str, overlap_seconds: float) -> tuple[str, ApiKey]:
        """Make another key with the rights of the newest one of this name, as `create` does.

        The earlier keys expire after `overlap_seconds`, and no later than before. The new key is
        valid as long as the newest one was from its creation. Raises KeyNotFound if no key of the
        name is valid.
        """
        with self._database.writing() as connection:
            now = time.time()
            valid = [key for key in self._named(connection, name) if key.is_valid(now)]
            if not valid:
                raise KeyNotFound(f"there is no valid key {name!r}")
            newest, until = valid[-1], now + overlap_seconds
            for key in valid:
                end = until if key.expires_at is None else min(until, key.expires_at)
                of = _K.key_id == key.key_id
                connection.execute(update(api_keys).where(of).values(expires_at=end))
            life = newest.expires_at and newest.expires_at - newest.created_at
            return self._insert(connection, name, newest.grant, life and now + life)

    def revoke(self, name: str) -> int:
        """Revoke every key of a name, and return their number. Raises KeyNotFound without any."""
        with self._database.writing() as connection:
            revoked = connection.execute(
                update(api_keys)
                .where(_K.name == name, _K.revoked_at.is_(None))
                .values(revoked_at=time.time())
            ).rowcount
        if not revoked:
            raise KeyNotFound(f"there is no key {name!r}, or it is revoked")
        return revoked

    def all(self) -> list[ApiKey]:
        """Every key, revoked and expired ones included, by name and age."""
        with self._database.reading() as connection:
            rows = connection.execute(select(api_keys).order_by(_K.name, _K.created_at))
            return [_key(row) for row in rows]

    def any(self) -> bool:
        """Whether a key was ever made, so that the server requires one."""
        with self._database.reading() as connection:
            return bool(connection.scalar(select(exists(select(_K.key_id)))))

    def get(self, key_id: str) -> ApiKey | None:
        """The key of an id, None if it does not exist."""
        with self._database.reading() as connection:
            row = connection.execute(select(api_keys).where(_K.key_id == key_id)).one_or_none()
        return None if row is None else _key(row)

    def of(self, text: str) -> ApiKey | None:
        """The key of a text, expired and revoked ones included; None if no key has it."""
        match = _KEY.fullmatch(text)
        if match is None:
            return None
        with self._database.reading() as connection:
            row = connection.execute(select(api_keys).where(_K.key_id == match["id"])).one_or_none()
        return _key(row) if row and hmac.compare_digest(row.hash, _hash(text)) else None

    def _named(self, connection: Connection, name: str) -> list[ApiKey]:
        query = select(api_keys).where(_K.name == name).order_by(_K.created_at)
        return [_key(row) for row in connection.execute(query)]

    def _insert(
        self, connection: Connection, name: str, grant: KeyGrant, expires_at: float | None
    ) -> tuple[str, ApiKey]:
        key_id = secrets.token_hex(6)
        text = f"callslip_{key_id}_{secrets.token_urlsafe(32)}"
        made = ApiKey(key_id, name, grant, time.time(), expires_at, None, None)
        connection.execute(
            insert(api_keys).values(
                key_id=key_id,
                name=name,
                hash=_hash(text),
                permissions=sorted(grant.permissions),
                collections=_list(grant.collections),
                tenants=_list(grant.tenants),
                user_name=grant.user,
                group_names=sorted(grant.groups),
                limits={k: v for k, v in asdict(grant.limits).items() if v is not None},
                created_at=made.created_at,
                expires_at=expires_at,
            )
        )
        return text, made


def mark_used(connection: Connection, last_used: Mapping[str, float]) -> None:
    """Record when keys were used last, by their ids."""
    for key_id, last in sorted(last_used.items()):
        later = _K.last_used_at.is_(None) | (_K.last_used_at < last)
        connection.execute(
            update(api_keys).where(_K.key_id == key_id, later).values(last_used_at=last)
        )


def looks_like_key(text: str) -> bool:
    """Whether a text has the form of a key."""
    return _KEY.fullmatch(text) is not None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _list(names: Collection[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _set(names: Collection[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)


def _key(row: Any) -> ApiKey:
    columns = row._mapping
    grant = KeyGrant(
        frozenset(row.permissions),
        _set(row.collections),
        _set(row.tenants),
        columns[_K.user_name],
        frozenset(columns[_K.group_names]),
        KeyLimits(**row.limits),
    )
    return ApiKey(
        row.key_id,
        row.name,
        grant,
        row.created_at,
        row.expires_at,
        row.revoked_at,
        row.last_used_at,
    )

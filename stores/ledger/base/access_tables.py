"""The ledger's tables of API keys, of their usage, and of the audit log."""

from sqlalchemy import JSON, BigInteger, Column, Float, Index, Integer, String, Table

from callslip.stores.ledger.base.schema import metadata as metadata

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", String(16), primary_key=True),
    Column("name", String(128), nullable=False),
    Column("hash", String(64), nullable=False),  # SHA-256 of the key, as hexadecimal digits
    Column("permissions", JSON, nullable=False),
    Column("collections", JSON(none_as_null=True)),  # null: every collection
    Column("tenants", JSON(none_as_null=True)),  # null: every tenant
    Column("user", String(256), key="user_name"),
    Column("groups", JSON, key="group_names", nullable=False),
    Column("limits", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("revoked_at", Float),
    Column("last_used_at", Float),
    Index("api_keys_of_a_name", "name"),
)
"""API keys. Rotation adds a key of the same name, and lets the earlier ones expire."""

key_usage = Table(
    "key_usage",
    metadata,
    Column("name", String(128), primary_key=True),
    Column("day", Integer, primary_key=True),  # since 1970, in UTC
    Column("requests", BigInteger, nullable=False),
    Column("documents", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
)
"""What the keys of a name have used on a day."""

audit_log = Table(
    "audit_log",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("caller", String(256), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("action", String(128), nullable=False),
    Column("status", Integer, nullable=False),
    Column("ids", JSON, nullable=False),
    Column("hash", String(64), nullable=False),
)
"""Every use of a key. The hash of a row covers the row and the hash of the one before."""

secrets = Table(
    "access_secrets",
    metadata,
    Column("name", String(96), primary_key=True),
    Column("value", String(256), nullable=False),
    Column("expires_at", Float),
)
"""The secret that signs sessions of the page, and hashes of links that log in once."""

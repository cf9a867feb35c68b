"""Tables of API keys, of their usage, of the audit log and of secrets."""

from alembic import op
from sqlalchemy import JSON, BigInteger, Column, Float, Index, Integer, MetaData, String, Table

revision = "0003"
down_revision = "0002"

FINGERPRINT = "097cac6cc5e04d19"
"""A hash of the statements that make this revision's tables on SQLite and PostgreSQL."""

_METADATA = MetaData()

Table(
    "api_keys",
    _METADATA,
    Column("key_id", String(16), primary_key=True),
    Column("name", String(128), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("permissions", JSON, nullable=False),
    Column("collections", JSON),
    Column("tenants", JSON),
    Column("user", String(256)),
    Column("groups", JSON, nullable=False),
    Column("limits", JSON, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float),
    Column("revoked_at", Float),
    Column("last_used_at", Float),
    Index("api_keys_of_a_name", "name"),
)

Table(
    "key_usage",
    _METADATA,
    Column("name", String(128), primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("documents", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("tokens", BigInteger, nullable=False),
)

Table(
    "audit_log",
    _METADATA,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("caller", String(256), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("action", String(128), nullable=False),
    Column("status", Integer, nullable=False),
    Column("ids", JSON, nullable=False),
    Column("hash", String(64), nullable=False),
)

Table(
    "access_secrets",
    _METADATA,
    Column("name", String(96), primary_key=True),
    Column("value", String(256), nullable=False),
    Column("expires_at", Float),
)


def upgrade() -> None:
    """Make the tables that are missing."""
    _METADATA.create_all(op.get_bind())

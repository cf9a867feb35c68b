"""A ledger of its own for each test, on SQLite and, where one is named, on PostgreSQL."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger_moves import KINDS, POSTGRESQL
from sqlalchemy import create_engine, make_url, text

from callslip.stores.ledger import Ledger
from callslip.stores.records import CollectionSchema, VectorSpec


@pytest.fixture(params=KINDS)
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database of each kind in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'ledger.db'}"
        return
    server = make_url(os.environ[POSTGRESQL])
    name = f"test_{uuid.uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    inside = server.update_query_dict({"options": f"-csearch_path={name}"})
    yield inside.render_as_string(hide_password=False)
    with engine.connect() as connection:
        connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
    engine.dispose()


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """A ledger with one collection, `papers`."""
    made = Ledger(ledger_url)
    made.create()
    made.collections.create(
        CollectionSchema("papers", VectorSpec(4)), store="memory", embedder="tiny", analyzer="1"
    )
    yield made
    made.close()

"""A CrateDB store at the fake, and at a real server where one is named."""

import os
from collections.abc import Iterator
from contextlib import closing

import pytest
from crate_server import REAL_CRATE

from callslip.config.settings import Settings
from callslip.stores.crate.connection import Connection
from callslip.stores.crate.store import CrateStore
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.registry import make_store

SERVERS = {"fake": "crate_at", **({"real": "real_crate_at"} if REAL_CRATE in os.environ else {})}


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Settings:
    """Settings of a store at the fake, then at the real server."""
    found: Settings = request.getfixturevalue(SERVERS[request.param])
    return found


@pytest.fixture(scope="module")
def crate(server: Settings) -> Iterator[CrateStore]:
    """A store at each server in turn."""
    with closing(make_store(server, "crate")) as made:
        assert isinstance(made, CrateStore)
        yield made


@pytest.fixture
def raw(server: Settings) -> Iterator[Connection]:
    """A connection of our own to the same server."""
    with closing(Connection(server.crate.url or "", "crate", None, 60)) as made:
        yield made


@pytest.fixture
def box(crate: CrateStore, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty collection of two dimensions."""
    name = f"box of {request.node.name}"
    crate.ensure_schema(CollectionSchema(name, VectorSpec(2)))
    yield name
    crate.drop_collection(name)

"""The stores that the contract suite runs against; a new store is a fixture and a line."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial

import long_forms
import pytest
import store_servers
from chroma_server import chroma_server, chroma_settings
from crate_server import REAL_CRATE, crate_server, crate_settings, schema_at
from keyword_parts import keyword_service, with_service
from memory_store import memory_server
from weaviate_server import REAL_SERVER, new_classes_dropped, weaviate_server, weaviate_settings

from callslip.config.settings import Settings, WeaviateSettings
from callslip.stores.contract import Store
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.registry import make_store


@pytest.fixture(scope="session")
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Chroma server for the whole session."""
    with chroma_server(tmp_path_factory.mktemp("chroma")) as (url, _):
        store_servers.note("Chroma", f"{url}/api/v2/version", "of its wheel")
        yield url


@pytest.fixture(scope="session")
def chroma_at(chroma_url: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a Chroma store that runs."""
    return chroma_settings(chroma_url, tmp_path_factory.mktemp("index"))


@pytest.fixture(scope="session")
def served_keywords_at(
    chroma_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Settings]:
    """Settings of a Chroma store whose keyword index is a service."""
    with keyword_service(tmp_path_factory.mktemp("keyword")) as keyword:
        yield with_service(chroma_settings(chroma_url, tmp_path_factory.mktemp("none")), keyword)


@pytest.fixture(scope="session")
def weaviate_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings of a store at the suite's own Weaviate server, which runs."""
    with weaviate_server(tmp_path_factory.mktemp("weaviate")) as (ports, _):
        url = f"http://127.0.0.1:{ports[0]}"
        store_servers.note("Weaviate", f"{url}/v1/meta", "the suite's own server")
        yield weaviate_settings(ports)


@pytest.fixture(scope="session")
def weaviate_server_at() -> Iterator[Settings]:
    """Settings of a store at a real Weaviate server, whose new classes are dropped at the end."""
    url, grpc_url = (
        os.environ.get(name) for name in (REAL_SERVER, REAL_SERVER.replace("_URL", "_GRPC_URL"))
    )
    settings = Settings(weaviate=WeaviateSettings(url=url, grpc_url=grpc_url))
    store_servers.note("Weaviate", f"{url}/v1/meta", REAL_SERVER)
    with new_classes_dropped(settings):
        yield settings


@pytest.fixture(scope="session")
def tfidf_at(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a TF-IDF store in a folder of its own."""
    return Settings(data_dir=tmp_path_factory.mktemp("tfidf"))


@pytest.fixture(scope="session")
def crate_at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings of a store at a fake of CrateDB."""
    with crate_server(tmp_path_factory.mktemp("crate")) as (url, _):
        store_servers.note("CrateDB", url, "the suite's own server")
        yield crate_settings(url)


@pytest.fixture(scope="session")
def real_crate_at() -> Iterator[Settings]:
    """Settings of a store at a real CrateDB, in a schema of its own."""
    store_servers.note("CrateDB", os.environ[REAL_CRATE], REAL_CRATE)
    with schema_at(os.environ[REAL_CRATE]) as settings:
        yield settings


STORES: Mapping[str, tuple[str, str]] = {
    "chroma": ("chroma", "chroma_at"),
    **({"keyword-service": ("chroma", "served_keywords_at")} if long_forms.ALL else {}),
    "weaviate": ("weaviate", "weaviate_at"),
    **(
        {"weaviate-server": ("weaviate", "weaviate_server_at")} if REAL_SERVER in os.environ else {}
    ),
    "crate": ("crate", "crate_at"),
    **({"crate-server": ("crate", "real_crate_at")} if REAL_CRATE in os.environ else {}),
    "tfidf": ("tfidf", "tfidf_at"),
}
"""By the name that the suite shows: the kind of store, and the fixture with its settings."""


@pytest.fixture(scope="session", params=[*STORES, "memory"])
def open_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Store]]:
    """What opens each store in turn, in this process or in another one."""
    if request.param == "memory":
        with memory_server(tmp_path_factory.mktemp("memory") / "socket") as opened:
            yield opened
    else:
        kind, settings = STORES[request.param]
        yield partial(make_store, request.getfixturevalue(settings), kind)


@pytest.fixture(scope="session")
def store(open_store: Callable[[], Store]) -> Iterator[Store]:
    """Each store in turn."""
    with closing(open_store()) as opened:
        yield opened


@pytest.fixture
def names(store: Store) -> Iterator[Callable[[], str]]:
    """Names for collections that are dropped after the test."""
    made: list[str] = []

    def name() -> str:
        made.append(f"t{time.monotonic_ns()}")
        return made[-1]

    yield name
    for collection in made:
        store.drop_collection(collection)


@pytest.fixture
def collection_name(store: Store, names: Callable[[], str]) -> str:
    """An empty collection of two dimensions."""
    name = names()
    store.ensure_schema(CollectionSchema(name, VectorSpec(2)))
    return name

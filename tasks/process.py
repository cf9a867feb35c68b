"""The clients and models of this process, made when first needed and never before a fork."""

import time
from functools import partial

import redis

from callslip.errors import BrokerDown, SettingsError
from config import get_settings
from ingestion.isolation import Extractor
from ingestion.workshop import Workshop
from models.per_process import PerProcess
from models.registry import (
    make_analyzer,
    make_confirmer,
    make_embedder,
    make_recognizer,
    make_reranker,
    make_tokenizer,
)
from retrieval.engine import Engine
from stores.blobs import Blobs
from stores.contract import Store
from stores.ledger import Ledger
from stores.registry import STORES, kinds, make_store
from tasks.queues import PRESENCE


def _make_ledger() -> Ledger:
    made = Ledger(get_settings().ledger_url)
    made.create()
    return made


def _make_workshop() -> Workshop:
    settings = get_settings()
    return Workshop(
        settings=settings,
        ledger=ledger(),
        blobs=blobs(),
        store_of=store,
        embedder=embedder(),
        tokenizer=make_tokenizer(settings),
        analyzer=analyzer(),
        extractor=Extractor(settings.extract),
        recognizer=make_recognizer(),
        confirmer=make_confirmer(settings),
    )


def _make_store(kind: str) -> Store:
    return make_store(get_settings(), kind)


def store(kind: str) -> Store:
    """The client of a kind of store; SettingsError for one that is not set up."""
    if kind not in _stores:
        raise SettingsError(f"There is no store {kind!r}; there are: {', '.join(STORES)}.")
    return _stores[kind].get()


def stores() -> dict[str, Store]:
    """The clients of every store that is set up, by kind."""
    return {kind: store(kind) for kind in kinds(get_settings())}


def _make_engine() -> Engine:
    settings, its = get_settings(), ledger()
    return Engine(
        settings,
        its,
        store,
        embedder(),
        analyzer(),
        make_recognizer(),
        make_reranker(settings, embedder(), its.token_vectors),
    )


def _make_broker() -> redis.Redis:
    return redis.Redis.from_url(
        broker_url(), socket_connect_timeout=2, socket_timeout=60, health_check_interval=25
    )


def broker_url() -> str:
    """Where the queue's broker is; SettingsError where nothing says so."""
    url = get_settings().broker.url
    if url is None:
        raise SettingsError(
            "broker.url is not set",
            hint="Start everything with `callslip up`, or set CALLSLIP_BROKER__URL.",
        )
    return url


ledger = PerProcess(_make_ledger).get
blobs = PerProcess(lambda: Blobs(get_settings().blobs_url)).get
_stores = {kind: PerProcess(partial(_make_store, kind)) for kind in STORES}
embedder = PerProcess(lambda: make_embedder(get_settings())).get
analyzer = PerProcess(make_analyzer).get
workshop = PerProcess(_make_workshop).get
engine = PerProcess(_make_engine).get
broker = PerProcess(_make_broker).get


def backlog(queue: str) -> int:
    """How many messages wait in a queue; BrokerDown where the broker does not answer."""
    try:
        return int(broker().llen(queue))
    except redis.RedisError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error


_COUNTED_SECONDS = 5.0
_processes: dict[str, tuple[float, int]] = {}


def processes(queue: str) -> int:
    """How many processes work on a queue, as their workers say; 0 where that is not known.

    Counted anew every few seconds.
    """
    at, count = _processes.get(queue, (-_COUNTED_SECONDS, 0))
    if time.monotonic() - at < _COUNTED_SECONDS:
        return count
    try:
        keys = list(broker().scan_iter(match=f"{PRESENCE}:{queue}:*", count=1000))
        count = sum(int(value) for value in broker().mget(keys) if value) if keys else 0
    except redis.RedisError:
        count = 0
    _processes[queue] = time.monotonic(), count
    return count

"""A broker behind a real Sentinel: its master dies, and work goes on with the replica."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis
from kombu import Connection
from long_forms import ALL
from processes import waits_until
from sentinels import Sentinels
from stack import WITHOUT_MODEL, MakeStack

from callslip.config.settings import Settings
from callslip.tasks.shared.broker import celery_options, celery_url, connect

DOCUMENTS = 60


@pytest.fixture
def sentinels(tmp_path: Path) -> Iterator[Sentinels]:
    with Sentinels(tmp_path) as made:
        yield made


def answers(broker: redis.Redis) -> bool:
    try:
        return bool(broker.ping())
    except redis.RedisError:
        return False


def test_clients_and_celery_find_the_new_master(sentinels: Sentinels) -> None:
    settings = Settings.model_validate({"broker": sentinels.settings})
    address, options = celery_url(settings), celery_options(settings)
    with connect(settings) as broker, Connection(address, transport_options=options) as celery:
        broker.set("lock", "taken")
        celery.SimpleQueue("q").put("before")
        assert broker.wait(1, 5000) == 1
        sentinels.kill_master()
        assert waits_until(lambda: answers(broker), 20)
        assert broker.get("lock") == b"taken"
        assert broker.connection_pool.master_address == ("127.0.0.1", sentinels.ports[1])
    with Connection(address, transport_options=options) as celery:
        queue = celery.SimpleQueue("q")
        queue.put("after")
        assert [queue.get(timeout=5).payload for _ in range(2)] == ["before", "after"]


@pytest.mark.skipif(not ALL, reason="a part of `make test-all`")
def test_documents_and_searches_go_on_with_the_new_master(
    sentinels: Sentinels, make_stack: MakeStack
) -> None:
    broker = {f"CALLSLIP_BROKER__{key.upper()}": value for key, value in sentinels.settings.items()}
    stack = make_stack(WITHOUT_MODEL | broker | {"CALLSLIP_INGEST__SWEEP_SECONDS": "1"}).start()
    with httpx.Client(base_url=stack.url, timeout=60, trust_env=False) as http:
        http.post("/v1/collections", json={"name": "c"}).raise_for_status()

        def submit(number: int) -> str:
            text = f"Case {number} is decided by office number {number}. " * 20
            answer = http.post(
                "/v1/collections/c/documents", json={"text": text, "name": f"{number}"}
            )
            assert answer.status_code == 202, answer.text
            return str(answer.json()["document_id"])

        def is_live(document_id: str) -> bool:
            return bool(http.get(f"/v1/documents/{document_id}").json()["state"] == "live")

        def searches() -> bool:
            question = {"collection": "c", "query": "office number 7"}
            return http.post("/v1/search", json=question).status_code == 200

        ids = [submit(number) for number in range(DOCUMENTS // 2)]
        sentinels.kill_master()
        killed = time.monotonic()
        ids += [submit(number) for number in range(DOCUMENTS // 2, DOCUMENTS)]
        assert waits_until(searches, 60), stack.tails()
        searched = time.monotonic() - killed
        assert waits_until(lambda: all(is_live(each) for each in ids), 120), stack.tails()
        sys.stdout.write(
            f"\n{DOCUMENTS} documents live {time.monotonic() - killed:.1f} s after the master was"
            f" killed, searches after {searched:.1f} s\n"
        )
        assert waits_until(lambda: http.get("/readyz").status_code == 200, 30)

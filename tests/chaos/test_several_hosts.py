"""Two hosts that search, two that ingest, one of the stores: cables, hosts and packets are lost."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from hosts import Host, Hosts, missing
from long_forms import ALL
from outcome import COLLECTION, Outcome, essay

from callslip.models.e5.prepare import prepare

FAULT_SECONDS = 10.0
BALANCER_SECONDS, CHECK_SECONDS = 5.0, 2.5
"""Seconds after which a load balancer sends a request, or a check, to the other host."""


@pytest.fixture
def hosts(tmp_path: Path, models_dir: Path) -> Iterator[Hosts]:
    if not ALL:
        pytest.skip("a part of `make test-all`")
    if reason := missing():
        pytest.skip(reason)
    prepare(models_dir)
    with Hosts(tmp_path, models_dir) as made, made.inside():
        yield made


class Client:
    """Sends documents and searches by turns to both hosts, as a load balancer does."""

    def __init__(self, hosts: Hosts) -> None:
        self.texts: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.searches, self.unanswered = 0, 0
        self.errors: list[str] = []
        self._hosts, self._stop = hosts, threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside the block documents are submitted and searched."""
        threads = [threading.Thread(target=self._submit), threading.Thread(target=self._search)]
        for thread in threads:
            thread.start()
        yield
        self._stop.set()
        for thread in threads:
            thread.join()

    def _post(self, first: int, path: str, body: object, good: int) -> httpx.Response | None:
        """The answer of the first host that gives a good one, of two tries each."""
        for turn in range(4):
            host = self._hosts.searching[(first + turn) % 2]
            if not self._is_up(host):
                continue
            try:
                answer = httpx.post(
                    host.url + path,
                    json=body,
                    headers=self._hosts.headers,
                    timeout=BALANCER_SECONDS,
                    trust_env=False,
                )
            except httpx.HTTPError as error:
                self.errors.append(f"{host.name} {path} {type(error).__name__}")
            else:
                if answer.status_code == good:
                    return answer
                self.errors.append(f"{host.name} {path} {answer.status_code}")
        return None

    def _is_up(self, host: Host) -> bool:
        """Whether the host answers and is not about to stop. There is no answer worker."""
        try:
            answer = httpx.get(f"{host.url}/readyz", timeout=CHECK_SECONDS, trust_env=False)
        except httpx.HTTPError:
            return False
        return "server" not in answer.json()["parts"]

    def _submit(self) -> None:
        number = 0
        while not self._stop.wait(0.3):
            name, text = f"{number}.txt", self.texts.get(f"{number}.txt") or essay(3)
            self.texts[name] = text
            path = f"/v1/collections/{COLLECTION}/documents"
            answer = self._post(number, path, {"text": text, "name": name}, 202)
            if answer is not None:
                self.ids[name] = answer.json()["document_id"]
                number += 1

    def _search(self) -> None:
        query = {"collection": COLLECTION, "query": "who receives a receipt with a number?"}
        while not self._stop.wait(0.5):
            self.searches += 1
            self.unanswered += self._post(self.searches, "/v1/search", query, 200) is None


def test_faults_of_hosts_and_cables_lose_and_double_nothing(hosts: Hosts) -> None:
    outcome = Outcome(hosts, hosts.headers)
    (search_a, search_b), (ingest_a, ingest_b) = hosts.searching, hosts.ingesting
    faults = {
        "search-a drained": hosts.drained(search_a),
        "ingest-a drained": hosts.drained(ingest_a),
        "ingest-a unplugged": hosts.unplugged(ingest_a),
        "ingest-b lost": hosts.lost(ingest_b),
        "search-a unplugged": hosts.unplugged(search_a),
        "search-b lost": hosts.lost(search_b),
        "ingest-a lossy": hosts.lossy(ingest_a),
        "search-a lossy": hosts.lossy(search_a),
    }
    client = Client(hosts)

    def state() -> list[int]:
        return [len(client.ids), client.searches, client.unanswered, len(client.errors)]

    with client.running():
        for name, fault in faults.items():
            before = state()
            with fault:
                time.sleep(FAULT_SECONDS)
            ready = hosts.wait_until_ready()
            counts = [b - a for a, b in zip(before, state(), strict=True)]
            sys.stdout.write(
                "\n{:20} {:3} documents, {:3} searches, {} unanswered, {:2} requests failed at one"
                " host, all parts ready after {:.1f} s".format(name, *counts, ready)
            )
            if name.endswith("drained"):
                assert not client.errors
                steps = (outcome.steps(document_id) for document_id in list(client.ids.values()))
                assert not any(step.crashes for each in steps for step in each)
    ended = time.monotonic()
    for document_id in client.ids.values():
        outcome.wait(document_id, "live")
    seconds = time.monotonic() - ended
    for name, document_id in client.ids.items():
        outcome.assert_whole(document_id, client.texts[name])
    assert outcome.ledger.inventory.count(COLLECTION) == len(client.ids)
    sys.stdout.write(
        f"\n{len(client.ids)} documents live {seconds:.1f} s after the last one, none lost or"
        f" doubled; {client.searches} searches\n{sorted(set(client.errors))}\n"
    )
    assert client.unanswered == 0
    outcome.close()

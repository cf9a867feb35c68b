"""The real Valkey and Chroma as `callslip up` runs them."""

import itertools
import os
import signal
import sys
from pathlib import Path

import chromadb
import httpx
import pytest
import redis
from chromadb.api import ClientAPI

from callslip.workers.supervision import services
from callslip.workers.supervision.child import Part
from callslip.workers.supervision.supervisor import Supervisor

PASSWORD = "of-this-test"
TENANT = services.chroma_tenant()

STRANGERS = ("default_tenant", TENANT[:1], TENANT[:-1], f"{TENANT}x", "*")
"""Tenants of requests by a program that does not know the secret."""

BODY = {
    "name": "another",
    "new_name": "another",
    "ids": ["a"],
    "embeddings": [[1.0, 0.0]],
    "query_embeddings": [[1.0, 0.0]],
    "searches": [{}],
}
"""The body of a request, with the fields of all routes."""

PUBLIC = {
    f"/api/v2/{name}"
    for name in (
        *("heartbeat", "healthcheck", "version", "pre-flight-checks", "auth/identity"),
        "tenants",
    )
}
"""Routes that answer everybody. They tell nothing of the data, and change nothing but that a tenant
may be added, which has no database and disappears at the next start.
"""


@pytest.fixture
def ports() -> list[int]:
    return services.free_ports(2)


def parts(data_dir: Path, ports: list[int], tenant: str = TENANT) -> list[Part]:
    chroma = services.chroma(data_dir, ports[1], tenant)
    return [services.valkey(data_dir, ports[0], PASSWORD), chroma]


def client(port: int, tenant: str = TENANT) -> ClientAPI:
    return chromadb.HttpClient("127.0.0.1", port, tenant=tenant)


def test_valkey_and_chroma_keep_their_data_over_a_restart(tmp_path: Path, ports: list[int]) -> None:
    with Supervisor(parts(tmp_path, ports), tmp_path / "logs", print) as supervisor:
        assert supervisor.start()
        with redis.Redis(port=ports[0], password=PASSWORD) as broker:
            broker.rpush("queue", "message")
        chroma = client(ports[1])
        chroma.create_collection("kept").add(ids=["a"], embeddings=[[1.0, 0.0]])
    assert not services.answers_ping(ports[0], PASSWORD)
    assert services.get(ports[1], "/api/v2/heartbeat") is None

    other = services.chroma_tenant()  # as each `callslip up` has another one
    with Supervisor(parts(tmp_path, ports, other), tmp_path / "logs", print) as supervisor:
        assert supervisor.start()
        with redis.Redis(port=ports[0], password=PASSWORD) as broker:
            assert broker.lrange("queue", 0, -1) == [b"message"]
        chroma = client(ports[1], other)
        assert chroma.get_collection("kept").get()["ids"] == ["a"]


def test_valkey_and_chroma_come_back_with_their_data_when_killed(
    tmp_path: Path, ports: list[int]
) -> None:
    pids: dict[str, int] = {}
    lines: list[str] = []

    def heard(line: str) -> None:
        lines.append(line)
        if sum("ready after" in line for line in lines) == 4:
            supervisor.request_stop()

    with Supervisor(parts(tmp_path, ports), tmp_path / "logs", heard, pids.update) as supervisor:
        assert supervisor.start()
        with redis.Redis(port=ports[0], password=PASSWORD) as broker:
            broker.rpush("queue", "message")
            broker.save()  # as it does by itself every five seconds
        chroma = client(ports[1])
        chroma.create_collection("kept").add(ids=["a"], embeddings=[[1.0, 0.0]])
        for pid in list(pids.values()):
            os.kill(pid, signal.SIGKILL)
        supervisor.watch()
        with redis.Redis(port=ports[0], password=PASSWORD) as broker:
            assert broker.lrange("queue", 0, -1) == [b"message"]
        chroma = client(ports[1])
        assert chroma.get_collection("kept").get()["ids"] == ["a"]


def test_both_listen_on_loopback_only_and_chroma_sends_nothing_home(
    tmp_path: Path, ports: list[int]
) -> None:
    valkey, chroma = parts(tmp_path, ports)
    assert "127.0.0.1" in valkey.argv
    assert chroma.env["CHROMA_LISTEN_ADDRESS"] == "127.0.0.1"
    assert chroma.env["ANONYMIZED_TELEMETRY"] == "False"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lists the files in a process's memory")
def test_the_server_of_chroma_does_not_load_the_client(tmp_path: Path, ports: list[int]) -> None:
    part = services.chroma(tmp_path, ports[1], TENANT)
    pids: dict[str, int] = {}
    with Supervisor([part], tmp_path / "logs", print, pids.update) as supervisor:
        assert supervisor.start()
        files = Path(f"/proc/{pids['chroma']}/maps").read_text()
    assert "chromadb_rust_bindings" in files
    assert "numpy" not in files  # the client imports it, and takes 50 MB


def test_valkey_refuses_a_process_without_its_password(tmp_path: Path, ports: list[int]) -> None:
    part = services.valkey(tmp_path, ports[0], PASSWORD)
    assert PASSWORD not in " ".join(part.argv)
    assert (tmp_path / "valkey" / "password.conf").stat().st_mode & 0o777 == 0o600
    with Supervisor([part], tmp_path / "logs", print) as supervisor:
        assert supervisor.start()
        assert not services.answers_ping(ports[0], "another")
        with redis.Redis(port=ports[0]) as broker, pytest.raises(redis.AuthenticationError):
            broker.keys()


def test_chroma_refuses_every_request_without_its_tenant(tmp_path: Path, ports: list[int]) -> None:
    part = services.chroma(tmp_path, ports[1], TENANT)
    assert TENANT not in " ".join(part.argv)
    with Supervisor([part], tmp_path / "logs", print) as supervisor:
        assert supervisor.start()
        collection = client(ports[1]).create_collection("letters")
        collection.add(ids=["a"], embeddings=[[1.0, 0.0]], documents=["secret text"])
        answers = {}
        url, each_anew = f"http://127.0.0.1:{ports[1]}", httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(base_url=url, limits=each_anew) as stranger:
            for path, methods in stranger.get("/openapi.json").json()["paths"].items():
                for method, tenant in itertools.product(methods, STRANGERS):
                    names = {"collection_id": collection.id, "database": "default_database"}
                    names |= {"tenant": tenant, "tenant_name": tenant, "crn": f"{tenant}:d:letters"}
                    at = path.format(**names, name="letters", function_name="letters")
                    try:
                        got = stranger.request(method, at, json=BODY)
                        answers[method, path, tenant] = (
                            got.status_code,
                            got.text.replace(tenant, ""),
                        )
                    except httpx.TransportError:  # it has no `crn`, and drops the connection
                        assert "crn" in path
                        answers[method, path, tenant] = 0, ""
        assert [each.name for each in client(ports[1]).list_collections()] == ["letters"]
        assert collection.get()["documents"] == ["secret text"]
    log = (tmp_path / "logs" / "chroma.log").read_text()
    texts = "".join((log, *(text for _, text in answers.values())))
    assert TENANT not in texts
    assert "secret text" not in texts
    answered = {path for (_, path, _), (status, _) in answers.items() if 200 <= status < 300}
    assert answered == PUBLIC
    scoped = [status for (_, path, _), (status, _) in answers.items() if "{tenant}" in path]
    assert len(scoped) > 100
    assert set(scoped) <= {400, 422, 429}

"""The real Valkey and Chroma as `callslip up` runs them."""

import os
import signal
from pathlib import Path

import chromadb
import pytest
import redis

from callslip.workers import services
from callslip.workers.child import Part
from callslip.workers.supervisor import Supervisor


@pytest.fixture
def ports() -> list[int]:
    return services.free_ports(2)


def parts(data_dir: Path, ports: list[int]) -> list[Part]:
    return [services.valkey(data_dir, ports[0]), services.chroma(data_dir, ports[1])]


def test_valkey_and_chroma_keep_their_data_over_a_restart(tmp_path: Path, ports: list[int]) -> None:
    with Supervisor(parts(tmp_path, ports), tmp_path / "logs", print) as supervisor:
        assert supervisor.start()
        with redis.Redis(port=ports[0]) as broker:
            broker.rpush("queue", "message")
        chroma = chromadb.HttpClient("127.0.0.1", ports[1])
        chroma.create_collection("kept").add(ids=["a"], embeddings=[[1.0, 0.0]])
    assert not services.answers_ping(ports[0])
    assert services.get(ports[1], "/api/v2/heartbeat") is None

    with Supervisor(parts(tmp_path, ports), tmp_path / "logs", print) as supervisor:
        assert supervisor.start()
        with redis.Redis(port=ports[0]) as broker:
            assert broker.lrange("queue", 0, -1) == [b"message"]
        chroma = chromadb.HttpClient("127.0.0.1", ports[1])
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
        with redis.Redis(port=ports[0]) as broker:
            broker.rpush("queue", "message")
        chroma = chromadb.HttpClient("127.0.0.1", ports[1])
        chroma.create_collection("kept").add(ids=["a"], embeddings=[[1.0, 0.0]])
        for pid in list(pids.values()):
            os.kill(pid, signal.SIGKILL)
        supervisor.watch()
        with redis.Redis(port=ports[0]) as broker:
            assert broker.lrange("queue", 0, -1) == [b"message"]
        chroma = chromadb.HttpClient("127.0.0.1", ports[1])
        assert chroma.get_collection("kept").get()["ids"] == ["a"]


def test_both_listen_on_loopback_only_and_chroma_sends_nothing_home(
    tmp_path: Path, ports: list[int]
) -> None:
    for part in parts(tmp_path, ports):
        assert "127.0.0.1" in part.argv
    assert services.chroma(tmp_path, ports[1]).env["ANONYMIZED_TELEMETRY"] == "False"

"""`callslip backup`, `restore --verify` and `purge` beside a running Callslip."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from api_calls import Api
from click.testing import CliRunner
from stack import Stack

from callslip.cli.main import main

MARKER = "xyzzymarker"
DOCUMENTS = 12


@pytest.fixture
def callslip(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command on the stack's data, in this process; the JSON that it prints."""
    monkeypatch.chdir(stack.data_dir)
    for name, value in stack.environ.items():
        if name.startswith("CALLSLIP_"):
            monkeypatch.setenv(name, value)

    def run(*arguments: str) -> Any:
        ended = CliRunner().invoke(main, [*arguments, "--json"])
        assert ended.exit_code == 0 or arguments[0] == "restore", ended.output
        return json.loads(ended.stdout)

    return run


@pytest.mark.long
def test_a_backup_while_documents_come_in_is_whole_and_can_be_purged(
    stack: Stack, callslip: Any, tmp_path: Path
) -> None:
    to = str(tmp_path / "backups")
    with Api(stack) as api:
        answer = {"collection": api.collection, "question": f"What is the {MARKER} fee?"}
        text = f"The {MARKER} fee is 12 euro. It is due in May."
        marked = api.live(text=text, name=f"{MARKER}.txt")
        answered = api.http.post("/v1/answer", json=answer | {"thread_id": "fee"})
        assert answered.status_code == 200, answered.text

        mine = [marked]

        def send() -> None:
            for n in range(DOCUMENTS):
                sent = api.send(text=f"Room {n} has {n} chairs and a window.", name=f"room {n}")
                mine.append(sent.json()["document_id"])

        sender = threading.Thread(target=send)
        sender.start()
        first = callslip("backup", to)
        sender.join()
        assert {api.settled(document_id)["state"] for document_id in mine} == {"live"}
        second = callslip("backup", to, "--keep", "0")
        assert second["documents"] >= first["documents"]
        assert len(callslip("backup", to, "--list")) == 2
        report = callslip("restore", to, "--backup", first["name"], "--verify")
        assert report["faults"] == []
        assert not {*mine} & {*report["lost"], *first["missing"], *second["missing"]}
        probes = report["probes"][api.collection]["vector"]
        assert probes["recall@10"][1] >= 0.9
        assert report["conversations"] >= 1

        receipt = callslip("purge", "--document", marked, "--backups", to, "--yes")
        assert not any(receipt["after"].values())
        assert receipt["rows"]["conversations"] == 1
        assert receipt["backups"]["objects"] > 0
        left = [
            path
            for path in stack.data_dir.rglob("*")
            if path.is_file() and MARKER.encode() in path.read_bytes()
        ]
        assert left == []
        hits = api.search("chairs").json()["hits"]
        assert {hit["document_id"] for hit in hits} <= {*mine} - {marked}
        assert hits

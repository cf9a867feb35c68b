"""Which of many files need not be submitted, and what `callslip ingest` does with the answer."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from reader_parts import COLLECTION, At, Installation, installation

from callslip.cli.commands.documents import ingest as command
from callslip.cli.main import main
from callslip.cli.shared import upload
from callslip.client import Client
from callslip.vocabulary import MOST_COMPARED

PATH = f"/v1/collections/{COLLECTION}/documents/unchanged"


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    with installation(tmp_path / "data", monkeypatch) as made:
        yield made


def compared(name: str, text: str, **fields: Any) -> dict[str, Any]:
    """What a submission of this text would have."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"name": name, "filename": name, "sha256": digest} | fields


def unchanged(at: At, *documents: dict[str, Any], **more: Any) -> list[str]:
    answer = at.call("POST", PATH, json={"documents": documents} | more)
    assert answer.status_code == 200, answer.text
    names: list[str] = answer.json["documents"]
    return names


def test_what_a_submission_would_not_change_is_unchanged(it: Installation) -> None:
    it.put("same.txt", "The canteen opens.")
    it.put("other.txt", "The canteen closes.")
    it.put("filed.txt", "The zebra.", properties='{"kind": "note"}', title="Zebra")
    assert unchanged(
        it.anyone,
        compared("same.txt", "The canteen opens."),
        compared("other.txt", "Other words."),
        compared("new.txt", "The canteen opens."),
        compared("filed.txt", "The zebra."),
        compared("a/../b.txt", "no name of a document"),
    ) == ["same.txt", "filed.txt"]


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({"properties": {"kind": "note"}, "title": "Zebra"}, True),
        ({"properties": {"kind": "memo"}}, False),
        ({"properties": {}}, False),
        ({"title": "Horse"}, False),
        ({"url": "https://example.org/zebra"}, False),
        ({"language": "ko"}, False),
        ({"filename": "zebra.txt"}, False),
    ],
)
def test_other_metadata_is_a_change(
    it: Installation, fields: dict[str, Any], *, same: bool
) -> None:
    it.put("filed.txt", "The zebra.", properties='{"kind": "note"}', title="Zebra")
    there = unchanged(it.anyone, compared("filed.txt", "The zebra.", **fields))
    assert there == (["filed.txt"] if same else [])


def test_a_document_that_is_not_live_is_sent_again(it: Installation) -> None:
    document_id = it.put("same.txt", "The canteen opens.")
    it.put("same.txt", "The canteen closes.")
    assert unchanged(it.anyone, compared("same.txt", "The canteen opens.")) == []
    it.anyone.call("DELETE", f"/v1/documents/{document_id}")
    assert unchanged(it.anyone, compared("same.txt", "The canteen closes.")) == []


def test_what_a_caller_may_not_read_does_not_show(it: Installation) -> None:
    it.put("board.txt", "The merger.", readers="group:board")
    assert unchanged(it.as_reader("user:bob"), compared("board.txt", "The merger.")) == []
    seen = unchanged(it.as_reader("group:board"), compared("board.txt", "The merger."))
    assert seen == ["board.txt"]


def test_too_many_files_and_what_is_no_hash_are_refused(it: Installation) -> None:
    many = [compared(f"{n}.txt", "") for n in range(MOST_COMPARED + 1)]
    assert it.anyone.call("POST", PATH, json={"documents": many}).status_code == 400
    wrong = {"documents": [compared("a.txt", "") | {"sha256": "0"}]}
    assert it.anyone.call("POST", PATH, json=wrong).status_code == 400
    nowhere = PATH.replace(COLLECTION, "none")
    assert it.anyone.call("POST", nowhere, json={"documents": []}).status_code == 404


def test_the_command_sends_only_what_changed(
    it: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[str] = []

    def connect(_: str | None) -> Client:
        served = httpx.Client(
            transport=httpx.WSGITransport(it.client.application),
            event_hooks={"request": [lambda r: requests.append(r.url.path.rpartition("/")[2])]},
        )
        return Client("http://127.0.0.1", http=served)

    monkeypatch.setattr(command, "connect", connect)
    monkeypatch.setattr(upload, "MOST_COMPARED", 2)
    folder = tmp_path / "folder"
    folder.mkdir()
    for n in range(3):
        (folder / f"{n}.txt").write_text(f"Notice {n} of the canteen.")

    def run(*more: str) -> dict[str, Any]:
        requests.clear()
        arguments = ["ingest", str(folder), "-c", COLLECTION, "--json", *more]
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, done.output
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    assert sorted(run()["live"]) == ["0.txt", "1.txt", "2.txt"]
    assert requests.count("unchanged") == 2
    assert requests.count("documents") == 4  # three files, and the list of the batch
    again = run()
    assert (again["live"], again["unchanged"]) == ([], ["0.txt", "1.txt", "2.txt"])
    assert requests.count("documents") == 1
    (folder / "1.txt").write_text("The canteen is closed.")
    changed = run()
    assert (changed["live"], changed["unchanged"]) == (["1.txt"], ["0.txt", "2.txt"])
    with_property = run("-p", "kind=note")
    assert (len(with_property["live"]), with_property["unchanged"]) == (3, [])
    assert len(run("-p", "kind=note")["unchanged"]) == 3
    restricted = run("--readers", "user:ann")  # readers are set in any case
    assert requests.count("unchanged") == 0
    assert len(restricted["unchanged"]) == 3

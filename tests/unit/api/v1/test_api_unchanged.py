"""Which of many files need not be submitted, and what `callslip ingest` does with the answer."""

import hashlib
import json
import os
import sqlite3
import zipfile
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
from callslip.cli.shared.paths import Source, find_files
from callslip.client import Client
from callslip.errors import PermanentError
from callslip.stores.blobs import original_name
from callslip.stores.naming import LONGEST_NAME
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


def client_of(it: Installation, requests: list[str]) -> Client:
    """A client of the server, which notes the last part of each request's path."""
    served = httpx.Client(
        transport=httpx.WSGITransport(it.client.application),
        event_hooks={"request": [lambda r: requests.append(r.url.path.rpartition("/")[2])]},
    )
    return Client("http://127.0.0.1", http=served)


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


@pytest.mark.long
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


def test_a_document_within_another_one_is_sent(it: Installation, tmp_path: Path) -> None:
    mail = it.put("mail.eml", "The canteen opens.")
    bill = it.put("bill.txt", "Soup costs 3.")
    assert unchanged(it.anyone, compared("bill.txt", "Soup costs 3.")) == ["bill.txt"]
    with sqlite3.connect(tmp_path / "data" / "ledger.db") as connection:
        within = "UPDATE documents SET parent_id = ?, parent_version = 1 WHERE document_id = ?"
        connection.execute(within, (mail, bill))
    connection.close()
    assert unchanged(it.anyone, compared("bill.txt", "Soup costs 3.")) == []


def test_each_spelling_of_a_name_has_its_own_result(it: Installation) -> None:
    composed, decomposed = "caf\u00e9.txt", "cafe\u0301.txt"
    it.put(composed, "The canteen opens.")
    same = compared(composed, "The canteen opens.")
    other = compared(composed, "The canteen closes.") | {"name": decomposed}
    assert unchanged(it.anyone, same, other) == [composed]
    assert unchanged(it.anyone, other, same | {"name": f"{composed} "}) == [f"{composed} "]
    assert unchanged(it.anyone, same | {"name": decomposed}, same) == [decomposed, composed]
    assert unchanged(it.anyone, same, same) == [composed]
    for changed in (other | {"name": composed}, same | {"language": "no code"}):
        assert unchanged(it.anyone, same, changed) == []
        assert unchanged(it.anyone, changed, same) == []


@pytest.mark.parametrize("field", ["name", "filename", "title"])
def test_a_name_is_as_long_as_that_of_a_submission(it: Installation, field: str) -> None:
    longest = compared("a.txt", "") | {field: "a" * LONGEST_NAME}
    assert unchanged(it.anyone, longest) == []
    longer = longest | {field: "a" * (LONGEST_NAME + 1)}
    assert it.anyone.call("POST", PATH, json={"documents": [longer]}).status_code == 400


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

    monkeypatch.setattr(command, "connect", lambda _: client_of(it, requests))
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
    document_id = it.ledger.documents.id_of(COLLECTION, "0.txt")
    assert document_id is not None
    it.context.blobs.delete(document_id)
    assert len(run("-p", "kind=note", "--again")["unchanged"]) == 3  # says the server of each
    assert (requests.count("unchanged"), requests.count("documents")) == (0, 4)
    original = original_name(hashlib.sha256((folder / "0.txt").read_bytes()).hexdigest())
    assert it.context.blobs.exists(document_id, original)


def test_a_name_that_is_not_unicode_does_not_keep_the_others_from_being_compared(
    it: Installation, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("The canteen opens.")
    strange = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt"))
    strange.write_text("The canteen closes.")
    it.put("a.txt", "The canteen opens.")
    sources = [Source(path, path.name) for path in (strange, tmp_path / "a.txt")]
    requests: list[str] = []
    with client_of(it, requests) as client:
        report = upload.ingest(client, COLLECTION, sources, show_bar=False)
    assert report.unchanged == ["a.txt"]
    assert [*report.live, *(f["name"] for f in report.failed)] == [strange.name]
    assert requests.count("unchanged") == 1


def test_the_report_counts_the_files_within_other_files(
    it: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with zipfile.ZipFile(tmp_path / "papers.zip", "w") as papers:
        papers.writestr("a.txt", "The canteen opens.")
        papers.writestr("b.txt", "The canteen closes.")
    (tmp_path / "c.txt").write_text("The zebra.")
    sources = find_files([str(tmp_path / name) for name in ("papers.zip", "c.txt")])
    with client_of(it, []) as client:
        report = upload.ingest(client, COLLECTION, sources, show_bar=False)
    assert (len(report.live) + len(report.failed), report.as_json()["within"]) == (4, 2)
    upload.show_report(report)
    assert capsys.readouterr().out.startswith("2 files and 2 within them: ")


def test_a_server_that_does_not_compare_gets_every_file(
    it: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("The canteen opens.")
    requests: list[str] = []
    with client_of(it, requests) as client:

        def refuse(*_: object, **__: object) -> None:
            raise PermanentError("answered 405")

        monkeypatch.setattr(client, "list_unchanged", refuse)
        source = Source(tmp_path / "a.txt", "a.txt")
        report = upload.ingest(client, COLLECTION, [source], show_bar=False)
    assert report.live == ["a.txt"]

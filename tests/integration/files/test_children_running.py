"""A ZIP through the running system: its files are documents, found, shown and deleted with it."""

import io
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from api_calls import Api
from stack import Stack


@pytest.fixture(scope="module")
def api(stack: Stack) -> Iterator[Api]:
    with Api(stack) as api:
        yield api


def zipped(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


LETTER = (
    b"From: a@example.com\nTo: b@example.com\nSubject: The bill\nMIME-Version: 1.0\n"
    b"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nAs agreed.\n"
    b"--b\nContent-Type: text/plain\nContent-Disposition: attachment; filename=bill.txt\n\n"
    b"Forty-two kroner for the stable.\n--b--\n"
)


def children(api: Api, parent: str, expected: int) -> dict[str, dict[str, object]]:
    """The children of a document by name, each settled."""
    path = f"/v1/collections/{api.collection}/documents"
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = api.http.get(path, params={"parent": parent}).json()["documents"]
        if len(found) == expected:
            return {d["name"]: api.settled(d["document_id"]) for d in found}
        time.sleep(0.1)
    raise AssertionError(f"only {len(found)} children came")


def test_what_came_within_a_zip_is_found_and_goes_with_it(api: Api) -> None:
    packed = zipped({"letters/bill.eml": LETTER, "broken.pdf": b"%PDF-1.7 and no more"})
    answer = api.upload("papers.zip", packed, properties='{"year": 2026}')
    parent = api.settled(answer.json()["document_id"])
    assert (parent["state"], parent["parent"]) == ("live", None)
    found = children(api, parent["document_id"], 2)
    letter = found["papers.zip/letters/bill.eml"]
    assert (letter["state"], letter["parent"]) == ("live", parent["document_id"])
    assert found["papers.zip/broken.pdf"]["error"]["type"] == "broken-file"  # type: ignore[index]
    (bill,) = children(api, str(letter["document_id"]), 1).values()
    assert bill["name"] == "papers.zip/letters/bill.eml/bill.txt"
    hit = api.search("what is paid for the stable", having_all={"year": 2026}).json()["hits"][0]
    assert hit["document_id"] == bill["document_id"]
    assert hit["within"] == "papers.zip/letters/bill.eml"
    assert api.http.delete(f"/v1/documents/{parent['document_id']}").status_code == 202
    assert api.search("what is paid for the stable").json()["hits"] == []
    until = time.monotonic() + 60
    while api.http.get(f"/v1/documents/{bill['document_id']}").json()["receipt"] is None:
        assert time.monotonic() < until
        time.sleep(0.2)


def test_the_command_line_waits_for_what_came_within(api: Api, tmp_path: Path) -> None:
    (tmp_path / "more.zip").write_bytes(zipped({"a.txt": b"A stable for two.", "b.pdf": b"%PDF-"}))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "callslip.cli", "ingest", str(tmp_path / "more.zip"), "--json"),
            *("-c", api.collection, "--url", str(api.http.base_url)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert sorted(report["live"]) == ["more.zip", "more.zip/a.txt"], done.stderr
    assert [failed["name"] for failed in report["failed"]] == ["more.zip/b.pdf"]
    assert done.returncode == 1

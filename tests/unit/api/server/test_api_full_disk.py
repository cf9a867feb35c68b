"""Below the mark of free space nothing is taken in, and everything else goes on."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from context_parts import LoneBroker, app_over
from flask.testing import FlaskClient
from ledger_moves import publish

from callslip.config.settings import IngestSettings, Settings
from callslip.errors import DiskFull
from callslip.stores import disk
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.tasks import ingest

DOCUMENT = {"text": "The boiler is in the cellar.", "name": "boiler"}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A ledger with the collection `papers`."""
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create()
    made.collections.create(
        CollectionSchema("papers", VectorSpec(4)), store="memory", embedder="tiny", analyzer="1"
    )
    monkeypatch.setattr(ingest, "send_all", lambda *_: True)
    yield made
    made.close()


@pytest.fixture
def client(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    """A server whose disk has 120 MB free."""
    monkeypatch.setattr(disk, "free_bytes", lambda _: 120_000_000)
    settings = Settings(data_dir=tmp_path, ingest=IngestSettings(min_free_mb=100))
    parts = {"ledger": ledger, "blobs": Blobs(str(tmp_path / "blobs")), "broker": LoneBroker()}
    return app_over(settings, **parts).test_client()


def submit(client: FlaskClient) -> Any:
    return client.post("/v1/collections/papers/documents", json=DOCUMENT)


def test_below_the_mark_a_document_is_refused_with_advice_and_reading_goes_on(
    client: FlaskClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = publish(ledger, "one", "x")
    monkeypatch.setattr(disk, "free_bytes", lambda _: 99_000_000)
    answer = submit(client)
    assert answer.status_code == 507
    assert answer.json["type"] == "urn:callslip:problem:disk-full"
    assert answer.json["detail"].startswith("99 MB are free")
    assert "ingest.min_free_mb" in answer.json["advice"]
    assert answer.headers["Retry-After"] == "30"
    assert client.get(f"/v1/documents/{item.document_id}").status_code == 200
    assert client.get("/v1/collections/papers/documents").json["states"] == {"live": 1}
    monkeypatch.setattr(disk, "free_bytes", lambda _: 101_000_000)
    assert submit(client).status_code == 202


def test_a_disk_that_fills_during_a_submission_is_the_same_problem(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("callslip.api.v1.documents.take_in", full)
    answer = submit(client)
    assert answer.status_code == 507
    assert answer.json["type"] == "urn:callslip:problem:disk-full"


def test_below_half_of_the_mark_no_step_begins(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(data_dir=tmp_path, ingest=IngestSettings(min_free_mb=100))
    monkeypatch.setattr(disk, "free_bytes", lambda _: 50_000_000)
    disk.check_space(settings, disk.STEPS_SHARE)
    monkeypatch.setattr(disk, "free_bytes", lambda _: 49_999_999)
    with pytest.raises(DiskFull, match="at least 50 are needed"):
        disk.check_space(settings, disk.STEPS_SHARE)


def test_the_room_of_a_folder_that_is_not_made_yet_is_that_of_its_disk(tmp_path: Path) -> None:
    there = disk.free_bytes(tmp_path)
    assert there > 0
    assert disk.free_bytes(tmp_path / "a" / "b") == pytest.approx(there, rel=0.1)

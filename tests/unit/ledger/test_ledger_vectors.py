"""The cache of vectors: kept by model and text, bounded, gone with the document."""

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager

import numpy as np
import pytest
from ledger_moves import publish, store_chunks, submit
from sqlalchemy import Connection, update

from callslip.stores.ledger import Ledger
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.schema import vectors
from callslip.stores.ledger.caches import vectors as caches
from callslip.stores.ledger.caches.vectors import TOUCH_SECONDS

pytest_plugins = ["ledger_fixtures"]


def put(ledger: Ledger, model: str, hashes: Iterable[str]) -> None:
    """Keep a vector for each of the hashes."""
    ledger.vectors.put({(model, h): np.full(4, len(h), np.float32) for h in hashes})


def age(url: str, seconds: float, *hashes: str) -> None:
    """Let vectors have been used so long ago."""
    database = Database(url)
    with database.writing() as connection:
        connection.execute(
            update(vectors)
            .where(vectors.c.text_hash.in_(hashes))
            .values(used_at=time.time() - seconds)
        )
    database.close()


def known(ledger: Ledger, *hashes: str) -> list[str]:
    """Which of the hashes have a vector of the model `m`."""
    return sorted(h for _, h in ledger.vectors.get([("m", h) for h in hashes]))


def test_a_vector_comes_back_as_it_was_kept(ledger: Ledger) -> None:
    vector = np.array([0.1, -2.5, np.pi, 0], np.float32)
    ledger.vectors.put({("m", "h"): vector})
    found = ledger.vectors.get([("m", "h"), ("m", "other")])
    assert list(found) == [("m", "h")]
    assert found["m", "h"].dtype == np.float32
    assert np.array_equal(found["m", "h"], vector)


def test_each_model_has_vectors_of_its_own_and_the_first_one_kept_stays(ledger: Ledger) -> None:
    put(ledger, "m", ["a"])
    put(ledger, "n", ["a", "bb"])
    ledger.vectors.put({("m", "a"): np.zeros(4, np.float32)})
    assert known(ledger, "a", "bb") == ["a"]
    assert ledger.vectors.get([("m", "a")])["m", "a"].tolist() == [1, 1, 1, 1]
    assert ledger.vectors.get([("m", "bb"), ("n", "a")]).keys() == {("n", "a")}


def test_no_text_is_no_question(ledger: Ledger) -> None:
    ledger.vectors.put({})
    assert ledger.vectors.get([]) == {}


def test_thousands_are_kept_and_found(ledger: Ledger) -> None:
    hashes = [f"hash {n}" for n in range(1500)]
    put(ledger, "m", hashes)
    assert len(known(ledger, *hashes)) == 1500


def test_the_least_recently_used_go_first(ledger: Ledger, ledger_url: str) -> None:
    put(ledger, "m", ["a", "b", "c", "d"])
    age(ledger_url, 3 * TOUCH_SECONDS, "a", "b")
    age(ledger_url, 2 * TOUCH_SECONDS, "c")
    assert known(ledger, "a") == ["a"]
    assert ledger.vectors.trim(4) == 0
    assert ledger.vectors.trim(2) == 2
    assert known(ledger, "a", "b", "c", "d") == ["a", "d"]
    assert ledger.vectors.trim(0) == 2


def test_they_go_in_short_transactions(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every writer waits for SQLite's lock while one transaction deletes."""
    begun, writing = [0], Database.writing

    def counted(self: Database) -> AbstractContextManager[Connection]:
        begun[0] += 1
        return writing(self)

    put(ledger, "m", [f"hash {n}" for n in range(7)])
    monkeypatch.setattr(caches, "PER_TRANSACTION", 2)
    monkeypatch.setattr(Database, "writing", counted)
    assert ledger.vectors.trim(2) == 5
    assert begun == [3]
    assert ledger.vectors.trim(2) == 0
    assert begun == [3]


def test_reading_what_was_used_lately_writes_nothing(ledger: Ledger, ledger_url: str) -> None:
    put(ledger, "m", ["a", "b"])
    database = Database(ledger_url)
    age(ledger_url, TOUCH_SECONDS / 2, "a", "b")
    known(ledger, "a", "b")
    with database.reading() as connection:
        used = connection.scalars(vectors.select().with_only_columns(vectors.c.used_at)).all()
    database.close()
    assert all(moment < time.time() - TOUCH_SECONDS / 3 for moment in used)


@pytest.mark.parametrize("stage", ["on its way", "live", "replaced"])
def test_a_deleted_document_leaves_no_vector(ledger: Ledger, stage: str) -> None:
    other = "hash of z"
    put(ledger, "m", ["hash of x", "hash of y", other])
    item = submit(ledger, "one")
    held = store_chunks(ledger, item, "xy")
    if stage != "on its way":
        ledger.leases.go_live(held, list("xy"), {})
    if stage == "replaced":
        publish(ledger, "two", "y")
        ledger.chunks.forget(item.document_id, ledger.chunks.end(item.document_id))
    ledger.documents.delete(item.document_id)
    ledger.chunks.forget(item.document_id)
    assert known(ledger, "hash of x", "hash of y", other) == [other]

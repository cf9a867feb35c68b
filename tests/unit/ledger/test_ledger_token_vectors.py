"""The cache of token vectors: kept by model and text, bounded, gone with the document."""

import time
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from ledger_moves import submit, taken, work
from sqlalchemy import update

from callslip.stores.ledger import Accepted, Ledger
from callslip.stores.ledger.base.database import Database
from callslip.stores.ledger.base.schema import token_vectors
from callslip.stores.ledger.caches.vectors import TOUCH_SECONDS, text_hash

pytest_plugins = ["ledger_fixtures"]


def matrix(tokens: int, seed: int = 0) -> npt.NDArray[np.float32]:
    made = np.random.default_rng(seed).normal(size=(tokens, 384))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def put(ledger: Ledger, model: str, texts: Iterable[str]) -> None:
    ledger.token_vectors.put(model, {text: matrix(3) for text in texts})


def document(ledger: Ledger, content: str, texts: Iterable[str]) -> Accepted:
    """A document with a chunk of each of the texts."""
    item = submit(ledger, content)
    work(ledger, item)
    ledger.chunks.expect(taken(ledger, item, "upsert"), {t: text_hash(t) for t in texts})
    return item


def age(url: str, seconds: float, *texts: str) -> None:
    """Let token vectors have been used so long ago."""
    database = Database(url)
    hashes = [text_hash(text) for text in texts]
    with database.writing() as connection:
        connection.execute(
            update(token_vectors)
            .where(token_vectors.c.text_hash.in_(hashes))
            .values(used_at=time.time() - seconds)
        )
    database.close()


def known(ledger: Ledger, *texts: str) -> list[str]:
    return sorted(ledger.token_vectors.get("m", texts))


def test_token_vectors_come_back_all_but_as_they_were(ledger: Ledger) -> None:
    kept = matrix(350)
    ledger.token_vectors.put("m", {"출산 장려금": kept, "nothing": matrix(0)})
    found = ledger.token_vectors.get("m", ["출산 장려금", "nothing", "unknown"])
    assert found.keys() == {"출산 장려금", "nothing"}
    assert found["nothing"].shape == (0, 384)
    assert found["출산 장려금"].dtype == np.float32
    assert np.abs(found["출산 장려금"] - kept).max() < 0.001


def test_each_model_has_its_own_and_the_first_one_kept_stays(ledger: Ledger) -> None:
    ledger.token_vectors.put("m", {"a": matrix(1)})
    ledger.token_vectors.put("n", {"a": matrix(2), "b": matrix(2)})
    ledger.token_vectors.put("m", {"a": matrix(9)})
    assert known(ledger, "a", "b") == ["a"]
    assert len(ledger.token_vectors.get("m", ["a"])["a"]) == 1


def test_no_text_is_no_question(ledger: Ledger) -> None:
    ledger.token_vectors.put("m", {})
    assert ledger.token_vectors.get("m", []) == {}


def test_a_text_without_utf_8_is_kept(ledger: Ledger) -> None:
    put(ledger, "m", ["a \ud800 b"])
    assert known(ledger, "a \ud800 b") == ["a \ud800 b"]


def test_the_least_recently_used_go_first(ledger: Ledger, ledger_url: str) -> None:
    document(ledger, "one", "abcd")
    put(ledger, "m", "abcd")
    age(ledger_url, 3 * TOUCH_SECONDS, "a", "b")
    age(ledger_url, 2 * TOUCH_SECONDS, "c")
    assert known(ledger, "a") == ["a"]
    assert ledger.token_vectors.trim(4) == 0
    assert ledger.token_vectors.trim(2) == 2
    assert known(ledger, *"abcd") == ["a", "d"]
    assert ledger.token_vectors.trim(0) == 2


def test_a_text_that_no_chunk_has_is_not_kept(ledger: Ledger) -> None:
    document(ledger, "one", "a")
    put(ledger, "m", "ab")
    assert ledger.token_vectors.trim(100) == 1
    assert known(ledger, "a", "b") == ["a"]


def test_a_deleted_document_leaves_no_token_vector(ledger: Ledger) -> None:
    item = document(ledger, "one", "xy")
    put(ledger, "m", "xyz")
    ledger.documents.delete(item.document_id)
    ledger.chunks.forget(item.document_id)
    assert known(ledger, *"xyz") == ["z"]


def test_a_removed_collection_leaves_no_token_vector(ledger: Ledger) -> None:
    document(ledger, "one", "xy")
    put(ledger, "m", "xyz")
    ledger.collections.delete("papers")
    ledger.collections.forget("papers")
    assert known(ledger, *"xyz") == ["z"]

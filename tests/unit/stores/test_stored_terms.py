"""What is stored beside a keyword index: the blocks, and the rows of earlier versions."""

import random
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from callslip.stores.fulltext.blocks import LARGEST, Packer, Unpacker, size_of
from callslip.stores.fulltext.stored_terms import StoredTerms
from callslip.stores.fulltext.text_cache import TextCache

Chunk = tuple[str, str, dict[str, object], str]


def chunk(name: str, word: str = "word", count: int = 1) -> Chunk:
    """A chunk whose text has the word as often."""
    return name, f"{word} " * count, {"kind": word, "쪽": count}, f"copy of {word}, 사본"


def stored(terms: StoredTerms, ids: list[str]) -> list[Chunk]:
    """All that is stored of these chunks."""
    texts, properties, copies = terms.get(ids), terms.properties(ids), terms.copies(ids)
    return [(i, texts[i], properties[i], copies.get(i, "")) for i in ids if i in texts]


def blocks(path: Path) -> list[bytes]:
    """The blocks of a file."""
    with closing(sqlite3.connect(path)) as database:
        return [
            block
            for column in ("terms", "properties", "copies")
            for (block,) in database.execute(f"SELECT block FROM {column}_blocks")
        ]


@pytest.fixture
def terms(tmp_path: Path) -> StoredTerms:
    return StoredTerms(tmp_path / "terms.db")


def test_any_sequence_of_writes_and_deletions_leaves_what_was_written_last(
    terms: StoredTerms, tmp_path: Path
) -> None:
    draw, expected = random.Random(7), dict[str, Chunk]()
    names = [f"c{number}" for number in range(60)]
    for _ in range(60):
        some = draw.sample(names, draw.randint(1, 25))
        if draw.random() < 0.3:
            terms.delete(some)
            for name in some:
                expected.pop(name, None)
        else:
            written = [chunk(n, f"{draw.getrandbits(64):x}", draw.randint(0, 900)) for n in some]
            terms.put(written)
            expected |= {each[0]: each for each in written}
        assert stored(terms, names) == [expected[n] for n in names if n in expected]
        assert {(i, t) for i, t, _ in terms.all()} == {(i, t) for i, t, *_ in expected.values()}
    terms.rewrite()
    assert stored(terms, names) == [expected[n] for n in names if n in expected]
    terms.delete(names)
    assert not blocks(tmp_path / "terms.db")


def test_nothing_of_a_deleted_or_replaced_chunk_stays_in_a_block(
    terms: StoredTerms, tmp_path: Path
) -> None:
    terms.put([chunk("a", "alpha"), chunk("b", "beta"), chunk("c", "gamma")])
    terms.delete(["a"])
    terms.put([chunk("b", "delta")])
    unpacker = Unpacker()
    texts = [text for block in blocks(tmp_path / "terms.db") for text in unpacker.texts(block)]
    assert not any("alpha" in text or "beta" in text for text in texts)
    assert [each[0] for each in stored(terms, ["a", "b", "c"])] == ["b", "c"]


def test_texts_are_those_of_the_last_write_also_where_an_old_text_was_read_before(
    terms: StoredTerms, tmp_path: Path
) -> None:
    other = StoredTerms(tmp_path / "terms.db")  # as another process does it
    for round_number in range(3):
        terms.put([chunk("a", f"alpha{round_number}"), chunk("b", "beta")])
        assert stored(terms, ["a", "b"])[0] == chunk("a", f"alpha{round_number}")
        other.delete(["a", "b"])  # the numbers of the blocks are free
        assert stored(terms, ["a", "b"]) == []
        other.put([chunk("b", f"gamma{round_number}"), chunk("a", "delta")])
        assert stored(terms, ["b", "a"]) == [
            chunk("b", f"gamma{round_number}"),
            chunk("a", "delta"),
        ]


def test_a_file_in_the_same_place_has_its_own_texts(terms: StoredTerms, tmp_path: Path) -> None:
    for word in ("alpha", "beta", "gamma"):
        terms.put([chunk("a", word)])
        assert stored(terms, ["a"]) == [chunk("a", word)]
        for file in tmp_path.iterdir():
            file.unlink()


def test_the_cache_of_texts_stays_below_its_bound() -> None:
    cache, file = TextCache(100_000), object()
    for start in range(0, 3000, 30):
        cache.add(file, "terms", {slot: f"{slot} " * 50 for slot in range(start, start + 30)})
        assert cache.get(file, "terms", [start + 29]) == {start + 29: f"{start + 29} " * 50}
        assert cache.size <= 100_000
    assert cache.get(object(), "terms", range(3000)) == {}
    assert cache.get(file, "copies", range(3000)) == {}
    assert 100 < len(cache.get(file, "terms", range(3000))) < 400
    size = cache.size
    cache.add(file, "copies", {1: "a whole document " * 100})
    assert (cache.get(file, "copies", [1]), cache.size) == ({}, size)


def test_small_batches_share_a_block_and_large_ones_are_cut(
    terms: StoredTerms, tmp_path: Path
) -> None:
    for number in range(20):
        terms.put([chunk(f"c{number}")])
    assert len(blocks(tmp_path / "terms.db")) == 3
    terms.put([chunk(f"d{number}", count=LARGEST // 10) for number in range(6)])
    sizes = [size_of(block) for block in blocks(tmp_path / "terms.db")]
    assert len(sizes) > 6
    assert max(sizes) < 2 * LARGEST


def test_a_chunk_that_a_batch_has_twice_is_the_last_one(terms: StoredTerms) -> None:
    terms.put([chunk("a", "first"), chunk("a", "second")])
    assert stored(terms, ["a", "a", "b"]) == [chunk("a", "second")] * 2


def test_a_damaged_block_is_an_error_of_the_file(terms: StoredTerms, tmp_path: Path) -> None:
    terms.put([chunk("a")])
    with closing(sqlite3.connect(tmp_path / "terms.db")) as database, database:
        database.execute("UPDATE terms_blocks SET block = zeroblob(20)")
    with pytest.raises(sqlite3.DatabaseError, match="damaged"):
        terms.get(["a"])
    assert Unpacker().texts(Packer().pack(["", "한", "a"])) == ["", "한", "a"]


def write_rows(path: Path) -> None:
    """Write chunks as earlier versions did: a row for each, some copies compressed."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA journal_mode=WAL")
        for column in ("terms", "properties", "copies"):
            database.execute(
                f"CREATE TABLE {column} (chunk_id TEXT PRIMARY KEY, {column} TEXT NOT NULL)"
                " WITHOUT ROWID"
            )
        for name in "abcd":
            database.execute("INSERT INTO terms VALUES (?, ?)", (name, f"terms of {name}"))
            database.execute("INSERT INTO properties VALUES (?, ?)", (name, '{"kind":"law"}'))
        packed = zlib.compress(b"copy of a", 1)
        copies = [("a", packed), ("b", "copy of b"), ("c", "")]
        database.executemany("INSERT INTO copies VALUES (?, ?)", copies)


def row(name: str, copy: str = "") -> Chunk:
    """A chunk that `write_rows` wrote."""
    return name, f"terms of {name}", {"kind": "law"}, copy


def test_rows_of_an_earlier_version_are_read_replaced_deleted_and_moved_to_blocks(
    terms: StoredTerms, tmp_path: Path
) -> None:
    write_rows(tmp_path / "terms.db")
    earlier = [row("a", "copy of a"), row("b", "copy of b"), row("c"), row("d")]
    assert stored(terms, list("abcde")) == earlier
    assert {i for i, *_ in terms.all()} == set("abcd")
    terms.put([chunk("b"), chunk("e")])
    terms.delete(["c"])
    now = [earlier[0], chunk("b"), earlier[3], chunk("e")]
    assert stored(terms, list("abcde")) == now
    assert sorted(i for i, *_ in terms.all()) == list("abde")
    terms.rewrite()
    assert stored(terms, list("abcde")) == now
    with closing(sqlite3.connect(tmp_path / "terms.db")) as database:
        assert not database.execute("SELECT * FROM terms").fetchall()


def test_a_file_of_the_first_version_has_terms_alone(terms: StoredTerms, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "terms.db")) as database, database:
        database.execute("CREATE TABLE terms (chunk_id TEXT PRIMARY KEY, terms TEXT NOT NULL)")
        database.execute("INSERT INTO terms VALUES ('a', 'every')")
    assert terms.get(["a"]) == {"a": "every"}
    assert (terms.properties(["a"]), terms.copies(["a"]), list(terms.all())) == ({}, {}, [])
    terms.rewrite()
    assert terms.get(["a"]) == {"a": "every"}
    terms.put([chunk("a")])
    assert stored(terms, ["a"]) == [chunk("a")]

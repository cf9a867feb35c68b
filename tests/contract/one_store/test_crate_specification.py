"""The documented table and the three documented queries, on Callslip's tables and on others'."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from crate.client import connect
from crate_page import statement
from crate_server import table_of
from store_cases import chunk

from callslip.config.settings import Settings
from callslip.stores.crate.connection import Connection, Sql
from callslip.stores.crate.store import CrateStore
from callslip.stores.records import CollectionSchema, Vector, VectorSpec

pytest_plugins = ["store_fixtures", "crate_fixtures"]

DIMENSION = 384
RANKS = {"both first": (1, 1), "seven": (7, 2), "ten": (10, 11)}
FUSED = (0.032786, 0.031054, 0.02837)

Row = tuple[str, str, Vector]
"""Name, content, vector."""


def turned(angle: float) -> Vector:
    """A unit vector in the plane of the first two axes."""
    vector = np.zeros(DIMENSION, np.float32)
    vector[:2] = np.cos(angle), np.sin(angle)
    return vector


EAST = turned(0)


def ranked_rows() -> list[Row]:
    """Rows for the word `x` and the vector EAST with the ranks of RANKS, twelve in each leg."""
    free = [i for i in range(1, 13) if i not in {k for k, _ in RANKS.values()}]
    other = [i for i in range(1, 13) if i not in {v for _, v in RANKS.values()}]
    ranks = {**RANKS, **{f"c{i}": pair for i, pair in enumerate(zip(free, other, strict=True))}}
    return [
        (name, "x " * (13 - keyword) + "y " * keyword, turned(vector / 20))
        for name, (keyword, vector) in ranks.items()
    ]


def of_callslip(
    crate: CrateStore, server: Settings, raw: Connection, box: str, rows: list[Row]
) -> str:
    """A collection of Callslip's with these rows; its table, in SQL."""
    crate.drop_collection(box)
    crate.ensure_schema(CollectionSchema(box, VectorSpec(DIMENSION)))
    crate.batch_upsert_chunks(
        box, [chunk(name, title=name, body=text, vector=xs) for name, text, xs in rows]
    )
    return table_of(crate, server, box)


def of_another(raw: Connection, table: str, rows: list[Row]) -> str:
    """The documented table with these rows, by no hand of Callslip's."""
    raw.run(Sql(statement("The table", table)))
    for name, text, xs in rows:
        raw.run(
            Sql(
                f'INSERT INTO {table} ("hierarchy", "title_fs", "content_fs", "xs", "metadata")'
                " VALUES (?, ?, ?, ?, ?)",
                (f"/films/{name}", name, text, xs.tolist(), {}),
            )
        )
    raw.run(Sql(f"REFRESH TABLE {table}"))
    return table


Made = Callable[[list[Row]], str]


@pytest.fixture(params=["callslip", "another"])
def made(
    request: pytest.FixtureRequest, crate: CrateStore, server: Settings, raw: Connection, box: str
) -> Iterator[Made]:
    """Makes a table of these rows; its name in SQL."""
    if request.param == "callslip":
        yield lambda rows: of_callslip(crate, server, raw, box, rows)
        return
    table = f'"{server.crate.schema_name}"."spec{time.monotonic_ns()}"'
    yield lambda rows: of_another(raw, table, rows)
    raw.run(Sql(f"DROP TABLE IF EXISTS {table}"))


def ask(server: Settings, heading: str, table: str, *values: Any) -> list[dict[str, Any]]:
    """The rows that a documented query gives to CrateDB's own client."""
    with connect(server.crate.url, username="crate") as connection:
        cursor = connection.cursor()
        given = [v.tolist() if isinstance(v, np.ndarray) else v for v in values]
        cursor.execute(statement(heading, table), given)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def test_the_documented_hybrid_query_ranks_as_documented(server: Settings, made: Made) -> None:
    table = made(ranked_rows())
    found = ask(server, "Hybrid search", table, "x", EAST, 12, 20)
    by_title = {row["title_fs"]: row for row in found}
    for name, expected in zip(RANKS, FUSED, strict=True):
        row = by_title[name]
        assert (row["bm25_rank"], row["vector_rank"]) == RANKS[name]
        assert row["final_rank"] == expected
    assert found[0]["title_fs"] == "both first"
    assert len(found) == 12
    assert len(ask(server, "Hybrid search", table, "x", EAST, 12, 3)) == 3


def test_a_row_of_one_retriever_alone_counts_and_ties_go_by_id(
    server: Settings, made: Made
) -> None:
    table = made(
        [
            *((f"words {i}", "sea and sand", turned(3)) for i in range(3)),
            ("near", "nothing of it", EAST),
        ]
    )
    found = ask(server, "Hybrid search", table, "sea", EAST, 1, 9)
    assert [row["final_rank"] for row in found] == [0.016393, 0.016393]
    assert [row["id"] for row in found] == sorted(row["id"] for row in found)
    assert {row["title_fs"] for row in found} >= {"near"}
    assert {(row["bm25_rank"], row["vector_rank"]) for row in found} == {(1, None), (None, 1)}
    words = ask(server, "Keyword search", table, "sea", 9)
    assert [row["_id"] for row in words] == sorted(row["_id"] for row in words)
    assert len({row["_score"] for row in words}) == 1


def test_the_documented_keyword_query_weighs_titles_and_knows_words(
    server: Settings, made: Made
) -> None:
    table = made(
        [
            ("Storm", "a film of wind", EAST),
            ("Calm", "a storm of film", EAST),
            ("Other", "nothing", EAST),
        ]
    )
    found = ask(server, "Keyword search", table, "STORM", 5)
    assert [row["title_fs"] for row in found] == ["Storm", "Calm"]
    assert found[0]["_score"] > found[1]["_score"]
    assert ask(server, "Keyword search", table, "storm", 1) == found[:1]
    assert ask(server, "Keyword search", table, "'; DROP TABLE x; --", 5) == []


def test_the_documented_semantic_query_gives_distances(server: Settings, made: Made) -> None:
    table = made([(f"at {i}", "text", turned(i / 10)) for i in range(30)])
    found = ask(server, "Semantic search", table, turned(0.52), 4)
    assert [row["title_fs"] for row in found] == ["at 5", "at 6", "at 4", "at 7"]
    for row in found:
        angle = int(row["title_fs"][3:]) / 10 - 0.52
        assert 2 - 1 / row["_score"] / 2 - 0.5 == pytest.approx(np.cos(angle), abs=1e-5)


def test_a_row_of_callslip_is_named_by_its_chunk(
    crate: CrateStore, server: Settings, raw: Connection, box: str
) -> None:
    table = of_callslip(crate, server, raw, box, [("a/b ç", "text", EAST)])
    assert raw.run(Sql(f'SELECT "_id", "chunk_id" FROM {table}')) == [["a/b ç", "a/b ç"]]

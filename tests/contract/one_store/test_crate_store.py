"""What is special about the CrateDB store, on the fake and on a real server where one is named."""

import os
from typing import Any

import numpy as np
import pytest
from crate_server import REAL_CRATE, table_of
from store_cases import EAST, chunk, ids, unit

from callslip.config.settings import Settings
from callslip.errors import InvalidRequest, SettingsError, StoreCannot
from callslip.stores.crate import columns, tables
from callslip.stores.crate.connection import Connection, Sql
from callslip.stores.crate.store import CrateStore
from callslip.stores.crate.tables import Layout
from callslip.stores.properties.filters import matches, parse
from callslip.stores.records import CollectionSchema, DocumentRecord, VectorSpec, visible

pytest_plugins = ["store_fixtures", "crate_fixtures"]


def test_the_suite_ran_against_a_real_server() -> None:
    if REAL_CRATE not in os.environ:
        pytest.skip(f"no CrateDB server: set {REAL_CRATE} to the address of one")


def test_the_table_has_the_columns_of_the_specification_in_their_order() -> None:
    statement = Layout("callslip", 1, "0-1").chunks("t", CollectionSchema("c", VectorSpec(384)))
    text = "TEXT INDEX USING FULLTEXT WITH (analyzer = 'standard') NOT NULL"
    assert statement.startswith(
        f'CREATE TABLE IF NOT EXISTS "callslip"."t" ("hierarchy" TEXT, "title_fs" {text},'
        f' "content_fs" {text}, "content_pretty" TEXT INDEX OFF STORAGE WITH (columnstore = FALSE),'
        ' "ref" TEXT, "xs" FLOAT_VECTOR(384) NOT NULL, "metadata" OBJECT(DYNAMIC) AS ('
    )


def test_other_programs_read_the_table_by_the_specification(
    crate: CrateStore, server: Settings, raw: Connection, box: str
) -> None:
    crate.batch_upsert_chunks(
        box,
        [
            chunk(
                "a",
                title="제목",
                body="본문",
                filename="a.pdf",
                section="1장/제2조",
                vector=np.array([3, 4], np.float32),
                pretty="# 본문",
                anchor="제2조",
                properties={"genre": "drama", "valid_from": "2024-01-01", "years": [1999, 2000]},
            )
        ],
    )
    specified = '"hierarchy", "title_fs", "content_fs", "content_pretty", "ref", "xs"'
    ours = "\"metadata\"['text']['genre'], \"metadata\"['numbers']['years'], \"valid_from\""
    table = table_of(crate, server, box)
    ((*texts, xs, genre, years, valid_from),) = raw.run(
        Sql(f'SELECT {specified}, {ours} FROM {table} WHERE "chunk_id" = ?', ("a",))
    )
    assert texts == ["a.pdf/1장/제2조", "제목", "본문", "# 본문", "제2조"]
    assert xs == pytest.approx([0.6, 0.8])
    assert (genre, years, valid_from) == ("drama", [1999.0, 2000.0], 1_704_067_200_000)


@pytest.mark.parametrize("dimension", [1, 2048])
def test_any_dimension_up_to_2048_is_taken(crate: CrateStore, dimension: int) -> None:
    name = f"wide-{dimension}"
    crate.ensure_schema(CollectionSchema(name, VectorSpec(dimension)))
    vector = unit(*np.linspace(1, 2, dimension))
    assert crate.batch_upsert_chunks(name, [chunk("a", vector=vector)]).stored == ("a",)
    assert crate.vector_query(name, vector, 1)[0].score == pytest.approx(1)
    crate.drop_collection(name)


def test_more_dimensions_than_crate_holds_are_an_invalid_request(crate: CrateStore) -> None:
    for schema in (
        CollectionSchema("wide", VectorSpec(2049)),
        CollectionSchema("wide", VectorSpec(2), {"further": VectorSpec(2049)}),
        CollectionSchema("w" * 2000, VectorSpec(2)),
    ):
        with pytest.raises(InvalidRequest, match=r"2049; CrateDB holds at most 2048|too long"):
            crate.ensure_schema(schema)
    assert "wide" not in crate.collections()


def test_an_address_that_is_none_is_a_settings_error() -> None:
    for url in ("localhost:4200", "ftp://127.0.0.1"):
        with pytest.raises(SettingsError, match=r"crate\.url"):
            Connection(url, "crate", None, 1)


HOSTILE = [
    '"; DROP TABLE x; --y',
    "a'b",
    "a\"b'c",
    "']['x",
    "[x]",
    "a.b",
    "_id",
    "%",
    "?",
    "\x00",
    "$1",
]


@pytest.mark.parametrize("name", [*HOSTILE, "📚", "A", "a", "출" * 200, "x" * 200])
def test_names_and_values_are_never_sql(crate: CrateStore, name: str) -> None:
    crate.ensure_schema(CollectionSchema(name, VectorSpec(2), {name: VectorSpec(2)}, tenants=True))
    crate.ensure_tenant(name, name)
    properties = {name: name, f"{name} list": [name, "y"], f"{name} number": 1}
    crate.batch_upsert_chunks(
        name,
        [chunk(name, document_id=name, terms=f"{name} every", properties=properties), chunk("b")],
        tenant=name,
    )
    (found,) = crate.get_chunks(name, [name], tenant=name)
    assert (found.chunk_id, found.properties) == (name, properties)
    star = name.replace("*", "")[:60]
    filters = ({name: name}, {f"{name} ~": f"*{star}*"}, {f"{name} list @": name})
    for filter_ in (*filters, {f"{name} number >": 0}, {"document_id": name}):
        assert crate.find_ids(name, parse(filter_, None), tenant=name) == [name]
    assert crate.aggregate_group_by(name, name, tenant=name) == [(name, 1)]
    crate.delete_documents(name, [name], tenant=name)
    assert crate.find_ids(name, tenant=name) == ["b"]
    crate.drop_collection(name)
    assert name not in crate.collections()


def test_like_takes_no_sign_of_its_own_for_a_wild_card(crate: CrateStore, box: str) -> None:
    texts = {"percent": "50%", "under": "5_0", "slash": "5\\0", "other": "5x0", "star": "5"}
    crate.batch_upsert_chunks(box, [chunk(i, properties={"p": t}) for i, t in texts.items()])
    for pattern, expected in (("5%", []), ("*%", ["percent"]), ("5_0", ["under"])):
        assert crate.find_ids(box, parse({"p ~": pattern}, None)) == expected
    assert crate.find_ids(box, parse({"p ~": "5\\*"}, None)) == ["slash"]


def test_long_ids_and_long_terms_are_whole(crate: CrateStore, box: str) -> None:
    long = "x" * 32_000
    crate.batch_upsert_documents(box, [DocumentRecord(long, "", "")])
    terms = f"{'y' * 300} z"
    crate.batch_upsert_chunks(
        box, [chunk(long, document_id=long, section=long, terms=terms), chunk("b", terms="y")]
    )
    assert crate.document_ids(box) == {long, "doc"}
    assert crate.get_documents(box, [long])[0].document_id == long
    assert ids(crate.keyword_query(box, "y" * 300, 5)) == [long]
    assert crate.keyword_query(box, "y" * 45, 5) == []
    (found,) = crate.get_chunks(box, [long], include_terms=True)
    assert (found.section, found.terms) == (long, terms)


def test_names_beyond_the_columns_of_a_table_are_found_all_the_same(
    crate: CrateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (columns, tables):
        monkeypatch.setattr(module, "MAX_COLUMNS", 60)
    crate.drop_collection("crowded")
    crate.ensure_schema(CollectionSchema("crowded", VectorSpec(2)))
    values: list[Any] = ["text", 2.5, True, "2024-03-01", ["x", "y", "x"], [1, 2], [False], "50%"]
    written = [
        chunk(f"c{i:02}", properties={f"p{i}": values[i % 8], f"q{i}": 1, "common": i % 3})
        for i in range(48)
    ]
    for some in (written[:20], written[20:]):
        assert not crate.batch_upsert_chunks("crowded", some).failed
    filters: list[dict[str, object]] = [{f"p{i}": values[i % 8]} for i in range(48) if i % 8 < 4]
    for i in range(40, 48):
        filters += [{f"p{i} ~": "*e*"}, {f"p{i} !=": "text"}, {f"p{i} not-in": [2.5, True]}]
        filters += [{f"p{i} >": 2}, {f"p{i} <=": "2024-03-01"}, {f"q{i}": 1}]
        filters += [{f"p{i} @": "x"}, {f"p{i} contains": [1, False]}]
    for filter_ in filters:
        where = parse(filter_, None)
        assert where is not None
        expected = [c.chunk_id for c in written if matches(where, visible(c))]
        assert crate.find_ids("crowded", where) == expected
        assert sorted(ids(crate.vector_query("crowded", EAST, 99, where))) == expected
    for i in range(40, 48):
        expected_groups = {"x": 1, "y": 1} if i % 8 == 4 else None
        groups = dict(crate.aggregate_group_by("crowded", f"p{i}"))
        assert len(groups) in (1, 2)
        assert expected_groups in (None, groups)
    assert dict(crate.aggregate_group_by("crowded", "common")) == {0: 16, 1: 16, 2: 16}
    crate.drop_collection("crowded")


def test_thousands_of_names_do_not_break_a_table(crate: CrateStore, box: str) -> None:
    for start in range(0, 3000, 60):
        properties: dict[str, Any] = {f"name {start + i}": f"v{i}" for i in range(60)}
        batch = [chunk(f"c{start:04}", properties=properties)]
        assert not crate.batch_upsert_chunks(box, batch).failed
    for i in (0, 900, 1100, 2999):
        where = parse({f"name {i}": f"v{i % 60}", f"name {i} ~": "v*"}, None)
        assert crate.find_ids(box, where) == [f"c{i - i % 60:04}"]


RANKS = {"both first": (1, 1), "seven": (7, 2), "ten": (10, 11)}


def test_native_fusion_is_that_of_the_specification(crate: CrateStore, box: str) -> None:
    """Reciprocal rank fusion: ranks (1, 1) give .032786, (7, 2) .031054 and (10, 11) .02837."""
    free = [i for i in range(1, 13) if i not in {k for k, _ in RANKS.values()}]
    other = [i for i in range(1, 13) if i not in {v for _, v in RANKS.values()}]
    ranks = {**RANKS, **{f"c{i}": pair for i, pair in enumerate(zip(free, other, strict=True))}}
    batch = []
    for name, (keyword, vector) in ranks.items():
        turn = vector / 20
        terms = "x " * (13 - keyword) + "y " * keyword
        batch.append(chunk(name, vector=unit(np.cos(turn), np.sin(turn)), terms=terms))
    batch.append(chunk("words only", vector=unit(-1, 0), terms="x " + "y " * 12))
    batch.append(chunk("vector only", vector=EAST, terms="y"))
    crate.batch_upsert_chunks(box, batch)
    crate.delete_chunks(box, ["vector only"])
    found = {
        c.chunk_id: c for c in crate.hybrid_query(box, EAST, "x", 20, pool=12, fusion="native")
    }
    for name, expected in zip(RANKS, (0.032786, 0.031054, 0.02837), strict=True):
        candidate = found[name]
        assert candidate.score == expected
        assert candidate.vector is not None
        assert candidate.keyword is not None
        assert (candidate.keyword.rank, candidate.vector.rank) == RANKS[name]
        assert candidate.vector.score == pytest.approx(np.cos(RANKS[name][1] / 20), abs=1e-5)
        alone = {h.chunk_id: h.score for h in crate.keyword_query(box, "x", 20)}
        assert candidate.keyword.score == alone[name]
    assert next(iter(found)) == "both first"


def test_a_hit_of_one_retriever_alone_counts_and_ties_go_by_id(crate: CrateStore, box: str) -> None:
    crate.batch_upsert_chunks(
        box,
        [
            chunk("b", terms="x", vector=unit(-1, 0)),
            chunk("c", terms="y"),
            chunk("a", terms="x", vector=unit(-1, 0)),
        ],
    )
    found = crate.hybrid_query(box, EAST, "x", 9, pool=1, fusion="native")
    assert [(c.chunk_id, c.score) for c in found] == [("a", 0.016393), ("c", 0.016393)]
    assert (found[0].vector, found[1].keyword) == (None, None)
    found = crate.hybrid_query(box, EAST, "x", 1, pool=9, fusion="native")
    assert len(found) == 1


def test_native_fusion_takes_filters_horizons_and_named_vectors(crate: CrateStore) -> None:
    schema = CollectionSchema(
        "fused", VectorSpec(2), {"l2": VectorSpec(2, "l2-squared"), "dot": VectorSpec(2, "dot")}
    )
    crate.drop_collection("fused")
    crate.ensure_schema(schema)
    turns = {"near": 0.1, "middle": 0.8, "far": 2.5}
    named = {"l2": np.array([0, 2], np.float32), "dot": np.array([1, 1], np.float32)}
    crate.batch_upsert_chunks(
        "fused",
        [
            chunk(i, vector=unit(np.cos(t), np.sin(t)), terms="x", named=named if t < 1 else {})
            for i, t in turns.items()
        ],
    )

    def ask(**options: Any) -> set[str]:
        query = options.pop("query", EAST)
        found = crate.hybrid_query("fused", query, "x", 9, fusion="native", **options)
        return {c.chunk_id for c in found}

    assert ask() == set(turns)
    assert ask(horizon=0.5) == {"near", "middle"}
    assert ask(horizon=1 - float(np.cos(0.8)) + 1e-6) == {"near", "middle"}
    assert ask(horizon=-1) == set()
    assert ask(where=parse({"document_id": "nobody"}, None)) == set()
    assert ask(where=parse({"nobody": 1}, None)) == set()
    assert ask(where=parse({"level": 0}, None), horizon=0.01) == {"near"}
    assert ask(vector_name="l2", horizon=5.0) == {"near", "middle"}
    assert ask(vector_name="l2", horizon=4.9) == set()
    for options in ({"vector_name": "dot"}, {"method": "manhattan"}):
        with pytest.raises(StoreCannot, match="indexed metric"):
            ask(**options)
    crate.drop_collection("fused")


def test_a_filtered_search_fills_its_page(crate: CrateStore, box: str) -> None:
    """The index filters after its k nearest, all of which this filter takes away."""
    turns = np.linspace(0, 1, 1500)
    crate.batch_upsert_chunks(
        box,
        [
            chunk(f"{i:04}", vector=unit(np.cos(t), np.sin(t)), level=int(i >= 1400))
            for i, t in enumerate(turns)
        ],
    )
    where = parse({"level": 1}, None)
    expected = [f"{i}" for i in range(1400, 1450)]
    assert ids(crate.vector_query(box, EAST, 50, where)) == expected
    found = crate.hybrid_query(box, EAST, "every", 500, where, pool=50, fusion="native")
    assert {c.chunk_id for c in found if c.vector} == set(expected)

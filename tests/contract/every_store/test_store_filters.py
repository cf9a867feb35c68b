"""How every store filters: both legs find what `matches` says, for every operator and type."""

from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_cases import agrees, chunk

from callslip.retrieval.query.as_of import validity_filter
from callslip.stores.contract import Store
from callslip.stores.properties.filters import matches, parse
from callslip.stores.records import CollectionSchema, VectorSpec, visible

pytest_plugins = ["store_fixtures"]

PROPERTIES: dict[str, dict[str, object]] = {
    "text": {"p": "출산 Leave"},
    "text lower": {"p": "출산 leave"},
    "text meta": {"p": r"a.b\c(d)[e]{1}^$|&-#~+?"},
    "text lines": {"p": "a\nb\tc"},
    "text 1": {"p": "1"},
    "text true": {"p": "true"},
    "text empty": {"p": ""},
    "one": {"p": 1},
    "minus": {"p": -2.5},
    "zero": {"p": -0.0},
    "large": {"p": 1e300},
    "true": {"p": True},
    "false": {"p": False},
    "day": {"p": "2024-03-01"},
    "same moment": {"p": "2024-03-01T09:00:00+09:00"},
    "later": {"p": "2024-03-01T00:00:00.000001Z"},
    "before 1970": {"p": "1926-05-05"},
    "texts": {"p": ["출산 Leave", "x"]},
    "numbers": {"p": [1, 2.5]},
    "truths": {"p": [True, True]},
    "days": {"p": ["2024-03-01", "2025-01-01"]},
    "nothing": {"p": []},
    "missing": {},
    "odd name": {"a.b $1": "v", "p": "other"},
    "tricky name": {"p:n": "1"},
}

FILTERS: list[dict[str, object]] = [
    {"p": "출산 Leave"},
    {"p ==": "1"},
    {"p": ""},
    {"p": "true"},
    {"p": 1},
    {"p": 0},
    {"p": -2.5},
    {"p": True},
    {"p": False},
    {"p": "2024-03-01"},
    {"p": "2024-03-01T00:00:00Z"},
    {"p": r"a.b\c(d)[e]{1}^$|&-#~+?"},
    {"p !=": "출산 Leave"},
    {"p !=": 1},
    {"p !=": True},
    {"p !=": "2024-03-01"},
    {"p ~": "출산*"},
    {"p ~": "*eave"},
    {"p ~": "*L*e"},
    {"p ~": "출산 Leave"},
    {"p ~": "*"},
    {"p ~": "**"},
    {"p ~": ""},
    {"p ~": "a*c"},
    {"p ~": r"a.b\*[e]*^$|&-#~+?"},
    {"p ~": "a?b"},
    {"p ~": ".*"},
    {"p ~": "2024-03*"},
    {"p ~": "1"},
    {"p >": 0},
    {"p >=": 1},
    {"p <": 1},
    {"p <=": -2.5},
    {"p >": 1e299},
    {"p <": -1e300},
    {"p >": "2024-03-01"},
    {"p >=": "2024-03-01"},
    {"p <": "2024-03-01T00:00:00.000001Z"},
    {"p <=": "1926-05-05"},
    {"p <": "1970-01-01"},
    {"p !>": 0},
    {"p !>=": 1},
    {"p !<": 1},
    {"p !<=": -2.5},
    {"p !>": "2024-03-01"},
    {"p !>=": "2024-03-01"},
    {"p !<": "2024-03-01T00:00:00.000001Z"},
    {"p !<=": "1926-05-05"},
    {"p @": "출산 Leave"},
    {"p @": 1},
    {"p @": 2.5},
    {"p @": True},
    {"p @": "2025-01-01T00:00:00+00:00"},
    {"p @": "missing"},
    {"p contains": ["x", "q"]},
    {"p contains": [2.5, True, "2024-03-01"]},
    {"p contains": "x"},
    {"p in": ["출산 Leave", "1"]},
    {"p in": [1, True, "1", "2024-03-01"]},
    {"p not-in": ["출산 Leave", "1"]},
    {"p not-in": [1, True, "1", "2024-03-01"]},
    {"a.b $1": "v"},
    {"a.b $1 !=": "v"},
    {"a.b $1 ~": "*v"},
    {"p:n": "1"},
    {"p:n ~": "*"},
    {"nobody": "v"},
    {"nobody !=": "v"},
    {"nobody ~": "*"},
    {"nobody >": 1},
    {"nobody !>": 1},
    {"p ~": "*ea*", "p !=": "출산 leave"},
    {"p >": -3, "p <": 1},
    {"p !>": "2024-06-01", "p !<=": "2023-01-01"},
]


@pytest.fixture(scope="module")
def cabinet(store: Store) -> str:
    """A collection with a chunk for each kind of property."""
    store.drop_collection("cabinet")
    store.ensure_schema(CollectionSchema("cabinet", VectorSpec(2)))
    outcome = store.batch_upsert_chunks(
        "cabinet", [chunk(i, properties=p) for i, p in PROPERTIES.items()]
    )
    assert not outcome.failed
    return "cabinet"


@pytest.mark.long
@pytest.mark.parametrize("filter_", FILTERS, ids=str)
def test_every_operator_means_the_same_on_both_retrievers(
    store: Store, cabinet: str, filter_: dict[str, object]
) -> None:
    where = parse(filter_, None)
    assert where is not None
    agrees(store, cabinet, where, {i for i, p in PROPERTIES.items() if matches(where, p)})


def test_the_validity_filter_hides_what_is_not_in_force(store: Store, collection_name: str) -> None:
    dates: dict[str, dict[str, object]] = {
        "begins": {"valid_from": "2020-01-01"},
        "later": {"valid_from": "2020-01-02", "valid_to": "2021-01-01"},
        "over": {"valid_to": "2020-01-01"},
        "within": {"valid_from": "2019-06-01T09:00:00+09:00", "valid_to": "2020-01-01T00:00:01Z"},
        "texts": {"valid_from": "once", "valid_to": ""},
        "undated": {},
    }
    store.batch_upsert_chunks(collection_name, [chunk(i, properties=p) for i, p in dates.items()])
    agrees(
        store,
        collection_name,
        validity_filter(None, date(2020, 1, 1)),
        {"begins", "within", "texts", "undated"},
    )
    agrees(
        store, collection_name, validity_filter(None, date(1, 1, 1)), {"over", "texts", "undated"}
    )


def test_any_of_a_group_and_all_of_another(store: Store, cabinet: str) -> None:
    where = parse({"p !=": "x"}, {"p >": 0, "p ~": "*eave", "p @": "x"})
    assert where is not None
    agrees(store, cabinet, where, {"one", "large", "text", "text lower", "texts"})
    where = parse(None, {"p": 1, "p @": 1})
    assert where is not None
    agrees(store, cabinet, where, {"one", "numbers"})


@pytest.mark.long
def test_a_filter_of_the_most_values_is_answered(store: Store, cabinet: str) -> None:
    for operator in ("in", "contains"):
        where = parse({f"p {operator}": [1, *(f"v{i}" for i in range(499))]}, None)
        assert where is not None
        agrees(store, cabinet, where, {"one"} if operator == "in" else {"numbers"})
    where = parse(None, {f"p{i} ~": "v*" for i in range(500)})
    assert where is not None
    agrees(store, cabinet, where, set())
    where = parse({f"p{i} !=": "v" for i in range(500)}, None)
    assert where is not None
    agrees(store, cabinet, where, set(PROPERTIES))


def test_filters_leave_scores_as_they_are(store: Store, cabinet: str) -> None:
    plain = {hit.chunk_id: hit.score for hit in store.keyword_query(cabinet, "every", 99)}
    for filter_ in ({"p": "1"}, {"p !=": "1"}, {"p ~": "*"}, {"p >": 0}, {"p in": [1, "1"]}):
        for hit in store.keyword_query(cabinet, "every", 99, parse(filter_, None)):
            assert hit.score == plain[hit.chunk_id]


def test_fields_of_a_chunk_can_be_filtered_on_and_no_property_hides_them(
    store: Store, collection_name: str
) -> None:
    fields = {"section": "1/2", "filename": "a.pdf", "title": "2024-01-01", "lang": "ko"}
    store.batch_upsert_chunks(
        collection_name,
        [
            chunk("a", document_id="d1", level=2, ordinal=7, **fields),
            chunk("b", document_id="d2", properties={**fields, "document_id": "d1", "level": 2}),
        ],
    )
    filters = [*fields.items(), ("document_id", "d1"), ("level", 2), ("ordinal", 7), ("level >", 1)]
    for key, value in filters:
        where = parse({key: value}, None)
        assert where is not None
        agrees(store, collection_name, where, {"a"})
    assert store.get_chunks(collection_name, ["b"])[0].properties["document_id"] == "d1"


CREATED, CHANGED = "2024-03-01T09:00:00.000001+00:00", "2024-05-01T00:00:00.000000+00:00"


@pytest.mark.long
@pytest.mark.parametrize(
    "filter_",
    [
        {"chunk_id": "a"},
        {"chunk_id": "2024-01-01"},
        {"chunk_id in": ["a", "b", "2024-01-01T00:00:00Z"]},
        {"chunk_id ~": "*0*"},
        {"chunk_id !=": "a"},
        {"chunk_id >": "2023-12-31"},
        {"created_at": CREATED},
        {"created_at": "2024-03-01T18:00:00.000001+09:00"},
        {"created_at >=": CREATED},
        {"created_at >": CREATED},
        {"created_at >": "2024-03-01"},
        {"created_at <": "2024-03-01T09:00:00Z"},
        {"created_at !=": CREATED},
        {"created_at !>=": "2024-03-01"},
        {"created_at ~": "2024-03*"},
        {"created_at >": 0},
        {"updated_at >=": "2024-05-01"},
        {"updated_at !<": "2024-05-01"},
        {"created_at >=": "2024-03-01", "updated_at <": "2024-05-01"},
    ],
    ids=str,
)
def test_ids_and_times_of_chunks_can_be_filtered_on(
    store: Store, timed: str, filter_: dict[str, object]
) -> None:
    where = parse(filter_, None)
    assert where is not None
    expected = {c.chunk_id for c in TIMED if matches(where, visible(c))}
    assert expected != {c.chunk_id for c in TIMED}
    agrees(store, timed, where, expected)


TIMED = [
    chunk("a", created_at=CREATED, updated_at=CHANGED),
    chunk("b", created_at=CREATED, updated_at=CREATED),
    chunk("of an earlier release"),
    chunk("2024-01-01", created_at=CHANGED, properties={"created_at": 7, "updated_at": ["x"]}),
    chunk("p", properties={"created_at": "2024-03-01", "updated_at": CHANGED}),
]
"""A property takes precedence over the time of the chunk."""


@pytest.fixture(scope="module")
def timed(store: Store) -> str:
    """A collection of chunks with times."""
    store.drop_collection("timed")
    store.ensure_schema(CollectionSchema("timed", VectorSpec(2)))
    assert not store.batch_upsert_chunks("timed", TIMED).failed
    return "timed"


def test_times_and_ids_are_among_what_filters_see(store: Store, timed: str) -> None:
    names = ("chunk_id", "created_at", "updated_at")
    ids = [c.chunk_id for c in TIMED]
    assert store.properties(timed, ids, names) == {
        c.chunk_id: {n: v for n, v in visible(c).items() if n in names} for c in TIMED
    }
    groups = dict(store.aggregate_group_by(timed, "updated_at"))
    assert groups == {CHANGED: 2, CREATED: 1, "x": 1}


def test_properties_cannot_collide_with_what_the_store_keeps(
    store: Store, collection_name: str
) -> None:
    names = ["record", "t:p", "n:p", "body", "terms", "vector", "chroma:document"]
    names += ["$and", "#document", "t1:p:", "a\x1fb", "props", "id", "한 글", "heading", "start"]
    properties = {name: f"value of {name}" for name in names}
    store.batch_upsert_chunks(collection_name, [chunk("a", properties=properties), chunk("b")])
    assert store.get_chunks(collection_name, ["a"])[0].properties == properties
    for name in names:
        where = parse({f"{name} ==": f"value of {name}"}, None)
        assert where is not None
        agrees(store, collection_name, where, {"a"})


TEXTS = st.sampled_from(["", "a", "A", "ab", "a*b", "한글", "1", "true", "a\nb", "x.y"])
NUMBERS = st.sampled_from([0, -0.0, 1, 1.0, -1, 2.5, 1e300, -1e-300, 2**53])
DATES = st.sampled_from(
    ["2024-01-01", "2024-01-01T00:00:00Z", "2024-01-01T09:00:00+09:00", "1969-12-31T23:59:59.5Z"]
)
KINDS = (TEXTS, NUMBERS, DATES, st.booleans())
SCALARS = st.one_of(KINDS)
VALUES = st.one_of(SCALARS, *(st.lists(kind, max_size=3) for kind in KINDS))
NAMES = st.sampled_from(["p", "q", "한 글"])
LIBRARIES = st.lists(st.dictionaries(NAMES, VALUES), min_size=1, max_size=12)
OPERANDS = {
    **dict.fromkeys(["==", "!=", "@"], SCALARS),
    **dict.fromkeys(["in", "not-in", "contains"], st.lists(SCALARS, min_size=1, max_size=4)),
    **dict.fromkeys([">", ">=", "<", "<=", "!>", "!>=", "!<", "!<="], st.one_of(NUMBERS, DATES)),
    "~": st.lists(TEXTS, min_size=1, max_size=3).map("*".join),
}


@st.composite
def groups(draw: st.DrawFn) -> dict[str, Any] | None:
    """A `having_all` or `having_any`."""
    group = {}
    for operator in draw(st.lists(st.sampled_from(sorted(OPERANDS)), max_size=3)):
        group[f"{draw(NAMES)} {operator}"] = draw(OPERANDS[operator])
    return group or None


@pytest.mark.long
@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(LIBRARIES, st.lists(st.tuples(groups(), groups()), min_size=8, max_size=8))
def test_any_filter_on_any_properties_finds_what_it_means(
    store: Store,
    drawers: str,
    library: list[dict[str, Any]],
    filters: list[tuple[dict[str, Any] | None, dict[str, Any] | None]],
) -> None:
    store.delete_documents(drawers, ["doc"])
    store.batch_upsert_chunks(
        drawers, [chunk(f"c{i}", properties=p) for i, p in enumerate(library)]
    )
    for having_all, having_any in filters:
        where = parse(having_all, having_any)
        if where:
            expected = {f"c{i}" for i, p in enumerate(library) if matches(where, p)}
            agrees(store, drawers, where, expected)


@pytest.fixture(scope="module")
def drawers(store: Store) -> str:
    """A collection that is emptied and filled again and again."""
    store.drop_collection("drawers")
    store.ensure_schema(CollectionSchema("drawers", VectorSpec(2)))
    return "drawers"


@pytest.mark.parametrize(
    "pattern",
    ["가" * 61 + "*" * 16, "*가나다" * 16, "*a" * 16 + "b" * 168, "*" + "?.+[" * 49],
)
def test_every_pattern_of_the_longest_length_is_answered(
    store: Store, collection_name: str, pattern: str
) -> None:
    store.batch_upsert_chunks(collection_name, [chunk("a", properties={"p": "가" * 62})])
    expected = ["a"] if pattern.startswith("가") else []
    assert store.find_ids(collection_name, parse({"p ~": pattern}, None)) == expected

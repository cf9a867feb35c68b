"""The search parameters and tenants through the API of a running stack."""

import time
import unicodedata
from collections.abc import Iterator

import pytest
from api_calls import Api, assert_problem
from processes import waits_until
from stack import Stack

TEXTS = {
    "paint": "Paint for walls is kept in the cellar.",
    "wall": "Walls are painted every seven years.",
    "bees": "The bees on the roof give honey in June.",
}


@pytest.fixture(scope="module")
def api(stack: Stack) -> Iterator[Api]:
    with Api(stack) as api:
        api.all_live(
            {"text": text, "name": name, "properties": {"about": name, "year": 2024}}
            for name, text in TEXTS.items()
        )
        yield api


def names(api: Api, query: str, **more: object) -> list[str]:
    answer = api.search(query, **more)
    assert answer.status_code == 200, answer.text
    return [hit["properties"]["about"] for hit in answer.json()["hits"]]


def test_without_top_all_are_given(api: Api) -> None:
    answer = api.search("honey").json()
    assert {h["properties"]["about"] for h in answer["hits"]} == set(TEXTS)
    assert answer["cut"] is False
    assert len(names(api, "honey", top=2)) == 2


def test_a_horizon_bounds_the_distance_of_every_hit(api: Api) -> None:
    full = api.search("honey of bees", alpha=1).json()["hits"]
    nearest = 1 - full[0]["legs"]["vector"]["score"]
    assert names(api, "honey of bees", alpha=1, horizon=nearest + 1e-4) == ["bees"]
    assert names(api, "honey walls", horizon=nearest - 0.1) == []


@pytest.mark.parametrize("method", ["dot", "l2-squared"])
def test_vectors_of_length_1_rank_alike_by_any_euclidean_method(api: Api, method: str) -> None:
    expected = names(api, "colour of the rooms", alpha=1)
    assert names(api, "colour of the rooms", alpha=1, method=method) == expected
    assert set(names(api, "colour of the rooms", method="manhattan")) == set(TEXTS)


def test_a_vector_of_ones_own_asks_without_words(api: Api) -> None:
    hit = api.search("bees", top=1, include_vector=True).json()["hits"][0]
    request = {"collection": api.collection, "query_embedding": hit["vector"], "top": 1}
    found = api.http.post("/v1/search", json=request).json()
    assert [h["chunk_id"] for h in found["hits"]] == [hit["chunk_id"]]
    assert found["hits"][0]["legs"] == {
        "vector": {"rank": 1, "score": pytest.approx(1)},
        "keyword": None,
    }
    assert api.search("bees").json()["hits"][0]["vector"] is None


def test_levels_count_from_the_top_and_from_the_bottom(api: Api) -> None:
    for level, given in ((2, [2, -1]), (1, [1, -2]), (0, [0, -3]), (None, [3, -4])):
        for operation_level in given:
            hits = api.search("bees", operation_level=operation_level).json()["hits"]
            assert [hit["level"] for hit in hits] == ([] if level is None else [level] * 3)
    assert {h["level"] for h in api.search("bees").json()["hits"]} == {2}
    every = api.search("bees", operation_level="every").json()["hits"]
    assert sorted(h["level"] for h in every) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


HANDBOOK = "# Opening\n\n{}\n\n# Keys\n\n{}\n".format(
    "The library opens at nine and closes at six. " * 60,
    "Keys hang behind the desk of the caretaker. " * 60,
)


@pytest.mark.long
def test_parents_of_what_is_ingested_hold_their_children(api: Api) -> None:
    api.live(text=HANDBOOK, name="handbook.md", properties={"about": "handbook"})
    only = {"having_all": {"about": "handbook"}}
    hits = api.search("where are the keys", **only).json()["hits"]
    assert len(hits) > 3
    for strategy in ("include", "replace"):
        found = api.search("where are the keys", parent_strategy=strategy, **only).json()["hits"]
        sections = [hit for hit in found if hit["level"] == 1]
        assert [hit["heading"] for hit in sections] == ["Keys", "Opening"]
        assert len(found) == 2 + (len(hits) if strategy == "include" else 0)
        by_id = {hit["chunk_id"]: hit for hit in found}
        for hit in found:
            assert HANDBOOK[hit["span"]["start"] : hit["span"]["end"]] == hit["text"]
            if strategy == "include" and hit["level"] == 2:
                assert hit["text"] in by_id[hit["parent_id"]]["text"]
    (document,) = api.search("keys", operation_level=1, parent_strategy="replace", **only).json()[
        "hits"
    ]
    assert (document["level"], document["parent_id"]) == (0, None)
    assert document["text"] == HANDBOOK.strip()


WRONG = {
    "tenant": ({"tenant": "city"}, 400, "invalid-request", "no tenants"),
    "vector": ({"vector_name": "title"}, 404, "vector-not-found", "'title'"),
    "property": ({"having_all": {"abuot": "x"}}, 400, "invalid-filter", "'abuot'"),
    "operator": ({"having_any": {"about =~": "x"}}, 400, "invalid-filter", "=~"),
    "native": ({"fusion": "native"}, 400, "store-cannot", "chroma"),
    "method": ({"method": "euclid"}, 400, "invalid-request", "method"),
    "dimension": ({"query_embedding": [1.0, 2.0]}, 400, "invalid-request", "384"),
    "horizon": ({"horizon": "far"}, 400, "invalid-request", "horizon"),
    "level": ({"operation_level": "all"}, 400, "invalid-request", "operation_level"),
    "strategy": ({"parent_strategy": "both"}, 400, "invalid-request", "parent_strategy"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_exist_is_named(api: Api, case: str) -> None:
    more, status, slug, named = WRONG[case]
    problem = assert_problem(api.search("bees", **more), status, slug)
    assert named in problem["detail"] + str(problem.get("errors"))
    if case == "property":
        assert "'about'" in problem["advice"]


@pytest.mark.long
def test_tenants_are_kept_apart_from_the_first_document_to_the_last(stack: Stack) -> None:
    with Api(stack) as api:
        api.collection += "-t"
        created = api.http.post("/v1/collections", json={"name": api.collection, "tenants": True})
        assert created.json()["tenants"] is True
        at = f"/v1/collections/{api.collection}"
        for tenant in ("서울시", "부산시"):
            api.live(text=f"{tenant} 도서관은 아홉 시에 연다.", name="hours", tenant=tenant)
        assert api.http.get(f"{at}/tenants").json() == {"tenants": ["부산시", "서울시"]}
        for tenant in ("서울시", "부산시"):
            hits = api.search("도서관은 언제 여나요?", tenant=tenant).json()["hits"]
            assert [h["text"][:3] for h in hits] == [tenant]
            listed = api.http.get(f"{at}/documents", params={"tenant": tenant}).json()
            assert [d["tenant"] for d in listed["documents"]] == [tenant]
        assert_problem(api.search("도서관"), 400, "invalid-request")
        assert_problem(api.search("도서관", tenant="대구시"), 404, "tenant-not-found")
        assert_problem(api.send(text="x y z"), 400, "invalid-request")
        assert api.http.delete(f"{at}/tenants/서울시").status_code == 202
        assert_problem(api.search("도서관", tenant="서울시"), 404, "tenant-not-found")
        assert_problem(api.http.delete(f"{at}/tenants/서울시"), 404, "tenant-not-found")
        until = time.monotonic() + 60
        while api.send(text="새 글", name="again", tenant="서울시").status_code == 409:
            assert time.monotonic() < until
            time.sleep(0.3)
        assert len(api.search("도서관", tenant="부산시").json()["hits"]) == 1


def test_a_tenant_is_the_same_however_its_name_is_written(stack: Stack) -> None:
    with Api(stack) as api:
        api.collection = f"{api.collection}-tenants"
        api.http.post("/v1/collections", json={"name": api.collection, "tenants": True})
        at = f"/v1/collections/{api.collection}"
        composed, apart = "한국은행", unicodedata.normalize("NFD", "한국은행")
        made = api.http.post(f"{at}/tenants", json={"tenant": apart})
        assert made.json() == {"tenant": composed}
        api.live(text="은행은 아홉 시에 연다.", name="hours", tenant=f" {composed}\n")
        for written in (apart, composed, f" {apart} "):
            assert len(api.search("은행", tenant=written).json()["hits"]) == 1
            listed = api.http.get(f"{at}/documents", params={"tenant": written}).json()
            assert len(listed["documents"]) == 1
        for bad in ("/", "a//b", "\n", "x" * 65):
            refused = api.http.post(f"{at}/tenants", json={"tenant": bad})
            assert_problem(refused, 400, "invalid-request")
        assert api.http.delete(f"{at}/tenants/{apart}").status_code == 202


def test_a_name_that_the_store_cannot_have_is_refused_before_anything_is_made(
    stack: Stack,
) -> None:
    with Api(stack) as api:
        long = f"{'F' * 63}c"
        assert_problem(
            api.http.post("/v1/collections", json={"name": long}), 400, "invalid-request"
        )
        at = f"/v1/collections/{api.collection}-tenants"
        api.http.post("/v1/collections", json={"name": at.split("/")[-1], "tenants": True})
        korean = "가" * 14
        for answer in (
            api.http.post(f"{at}/tenants", json={"tenant": korean}),
            api.http.post(f"{at}/documents", json={"text": "x", "tenant": korean}),
        ):
            assert_problem(answer, 400, "invalid-request")
        listed = api.http.get("/v1/collections").json()["collections"]
        assert long not in {collection["name"] for collection in listed}
        assert api.http.get(f"{at}/tenants").json() == {"tenants": []}


def test_a_collection_for_tenants_that_never_had_one_can_be_deleted(stack: Stack) -> None:
    with Api(stack) as api:
        name = f"{api.collection}-tenants"
        api.http.post("/v1/collections", json={"name": name, "tenants": True})
        assert api.http.delete(f"/v1/collections/{name}").status_code == 202
        made_anew = {"name": name, "tenants": False}
        assert waits_until(
            lambda: api.http.post("/v1/collections", json=made_anew).status_code == 201
        )

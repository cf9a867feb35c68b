"""FAQ through the API of a running stack."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from api_calls import assert_problem
from stack import Stack

ROWS = [
    {"id": 1, "question": "How do I reset my password?", "answer": "Press *Forgotten*."},
    {"id": "b", "question": "여권은 어디서 만드나요?", "answer": "시청 민원실에서 만듭니다."},
    {"question": "When does the library open?", "answer": "At nine on weekdays."},
]

STRATEGIES = ("question", "answer", "question_answer")


@pytest.fixture
def http(stack: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.url, timeout=120, trust_env=False) as http:
        yield http


def test_rows_are_found_as_soon_as_they_are_written(http: httpx.Client) -> None:
    name = f"faq-{uuid.uuid4().hex[:8]}"
    written = http.post(f"/v1/faq/{name}", json={"rows": ROWS})
    assert written.status_code == 200, written.text
    collections = [f"{name}__{strategy}" for strategy in STRATEGIES]
    assert list(written.json()["collections"]) == collections
    request = {"query": "여권을 만들고 싶어요", "collections": collections, "top_k": 3}
    found = http.post("/v1/compare", json=request).json()
    assert [hits[0]["id"] for hits in found["collections"].values()] == ["faq_b"] * 3
    assert len(found["merged"]) == len({hit["id"] for hit in found["merged"]}) == 3
    same = http.post("/v1/compare", json=request | {"query": ROWS[0]["question"]}).json()
    assert same["merged"][0]["similarity"] > 0.9  # questions and passages have other prefixes
    changed = [ROWS[0] | {"answer": "Ask the desk."}, *ROWS[1:]]
    counts = http.post(f"/v1/faq/{name}", json={"rows": changed}).json()["collections"]
    assert counts[collections[0]] == {"new": 0, "changed": 1, "unchanged": 2}
    again = http.post("/v1/compare", json=request | {"query": "password reset"}).json()
    for hits in again["collections"].values():
        assert hits[0]["metadata"] == changed[0]
    http.post(f"/v1/faq/{name}/remove", json={"ids": [1]})
    gone = http.post("/v1/compare", json=request | {"query": "password reset"}).json()
    assert "faq_1" not in {hit["id"] for hit in gone["merged"]}
    for collection in collections:
        assert http.delete(f"/v1/collections/{collection}").status_code == 202
    missing = http.post("/v1/compare", json=request)
    assert_problem(missing, 404, "collection-not-found")


def test_many_may_write_into_a_new_faq_at_once(http: httpx.Client) -> None:
    name = f"faq-{uuid.uuid4().hex[:8]}"

    def write(part: int) -> int:
        rows = [{"id": f"{part}-{n}", "question": f"{n}?", "answer": f"{part}."} for n in range(5)]
        body = {"rows": rows, "strategies": ["answer"]}
        return http.post(f"/v1/faq/{name}", json=body).status_code

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(write, range(4))) == {200}
    (ids,) = http.get(f"/v1/faq/{name}").json()["collections"].values()
    assert len(ids) == 20

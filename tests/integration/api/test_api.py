"""Documents and searches through the API of a running stack."""

import time
from collections.abc import Iterator

import pytest
from api_calls import Api, assert_problem
from stack import Stack

from callslip.messages.options import Options


@pytest.fixture(scope="module")
def api(stack: Stack) -> Iterator[Api]:
    with Api(stack) as api:
        yield api


LEAVE = "Parental leave lasts fourteen months. The request is made eight weeks before it begins."
GRANT = "출산장려금은 첫째 자녀에게 이백만 원을 지급한다. 신청은 출생일부터 육십 일 이내에 한다."


def test_a_document_goes_in_and_a_search_finds_it(api: Api) -> None:
    answer = api.send(text=LEAVE, name="leave.txt", title="Leave", properties={"year": 2026})
    assert answer.status_code == 202
    submitted = answer.json()
    assert submitted["outcome"] == "accepted"
    document = api.settled(submitted["document_id"])
    assert [s["step"] for s in document["steps"]] == [
        *("extract", "sectionize", "chunk", "enrich", "embed", "upsert")
    ]
    assert all(s["state"] == "done" and s["attempts"] == 1 for s in document["steps"])
    assert all(s["seconds"] is not None for s in document["steps"])
    assert document["steps"][2]["counts"]["chunks"] == 1
    assert document["steps"][5]["counts"] == {"chunks": 1, "parents": 2, "written": 3}
    task = api.http.get(submitted["task_url"]).json()
    assert (task["state"], task["steps_done"]) == ("done", 6)
    found = api.search("how long is parental leave?").json()
    hit = found["hits"][0]
    assert hit["text"] == LEAVE
    assert hit["document_id"] == submitted["document_id"]
    assert hit["title"] == "Leave"
    assert hit["properties"] == {"year": 2026}
    assert hit["legs"]["vector"]["rank"] >= 1
    assert hit["legs"]["keyword"]["rank"] >= 1
    text = api.http.get(f"/v1/documents/{hit['document_id']}/text", params=hit["span"]).json()
    assert text["text"] == hit["text"]


def test_both_spellings_of_a_korean_compound_find_the_passage(api: Api) -> None:
    api.live(text=GRANT, name="grant.txt")
    for query in ("출산장려금", "출산 장려금"):
        hits = api.search(query, alpha=0).json()["hits"]
        assert hits[0]["text"] == GRANT
        assert hits[0]["lang"] == "ko"


def test_a_collection_says_what_is_found_out_about_its_documents(api: Api) -> None:
    name = f"notices-{time.monotonic_ns()}"
    options = {
        "dictionary": {"출산장려금": ["birth grant"]},
        "rules": [{"set": {"doc_type": "notice"}, "name": "notices/*", "content": None}],
        "scrub": "text",
        "json_fields": {"title": ["question"], "text": ["answer.text"], "properties": None},
    }
    made = api.http.post("/v1/collections", json={"name": name, "options": options})
    assert made.status_code == 201
    assert made.json()["options"] == Options.model_validate(options).model_dump(mode="json")
    text = "출산 장려금 제도는 2024년 1월 1일부터 시행한다. 문의 010-1234-5678."
    sent = {"text": text, "name": "notices/a.txt"}
    submitted = api.http.post(f"/v1/collections/{name}/documents", json=sent).json()
    api.settled(submitted["document_id"])
    given = {"entities @": "birth grant", "valid_from <=": "2024-01-01", "doc_type": "notice"}
    sent_request = {"collection": name, "query": "출산장려금", "having_all": given}
    (hit,) = api.http.post("/v1/search", json=sent_request).json()["hits"]
    assert hit["text"] == text.replace("010-1234-5678", "■" * 13)
    assert "출산 장려금" in hit["properties"]["entities"]
    other = api.http.put(f"/v1/collections/{name}/options", json={"scrub": "off"})
    assert (other.status_code, other.json()["scrub"], other.json()["rules"]) == (200, "off", [])
    again = api.http.post("/v1/collections", json={"name": name, "options": options})
    assert_problem(again, 409, "collection-exists")
    for wrong in ({"scrub": "all"}, {"rules": [{"set": {"a": "b"}}]}, {"confirm": True}):
        refused = api.http.put(f"/v1/collections/{name}/options", json=wrong)
        assert refused.status_code in (400, 422)
        assert refused.json()["detail"]
    nowhere = api.http.put("/v1/collections/nowhere/options", json={})
    assert_problem(nowhere, 404, "collection-not-found")


def test_days_that_contradict_each_other_are_refused(api: Api) -> None:
    wrong = {"valid_from": "2024-01-02", "valid_to": "2024-01-01"}
    refused = api.send(text=LEAVE, name="dates.txt", properties=wrong)
    assert_problem(refused, 400, "invalid-request")
    assert "valid_to (2024-01-01) is before valid_from" in refused.json()["detail"]


def test_filters_narrow_both_retrievers(api: Api) -> None:
    for kind in ("policy", "faq"):
        api.live(text=f"Overtime is paid double ({kind}).", name=kind, properties={"kind": kind})
    for alpha in (0, 1, 0.5):
        found = api.search("overtime pay", alpha=alpha, having_all={"kind": "faq"}).json()
        assert [h["properties"]["kind"] for h in found["hits"]] == ["faq"]
    assert api.search("overtime", having_all={"kind": "none"}).json()["hits"] == []


def test_a_new_version_replaces_the_old_one(api: Api) -> None:
    first = api.live(text="The canteen opens at eight.", name="canteen")
    second = api.live(text="The canteen opens at nine.", name="canteen")
    assert first == second
    assert api.http.get(f"/v1/documents/{second}").json()["version"] == 2
    texts = [h["text"] for h in api.search("when does the canteen open").json()["hits"]]
    assert "The canteen opens at nine." in texts
    assert "The canteen opens at eight." not in texts


def test_the_same_content_again_does_nothing_and_says_so(api: Api) -> None:
    api.live(text="The car park has forty places.", name="parking")
    again = api.send(text="The car park has forty places.", name="parking")
    assert again.status_code == 200
    assert again.json()["outcome"] == "unchanged"


def test_the_same_content_under_another_name_is_refused_unless_wanted(api: Api) -> None:
    api.live(text="Keys are kept at the desk.", name="keys")
    problem = assert_problem(
        api.send(text="Keys are kept at the desk.", name="keys-2"), 409, "duplicate-content"
    )
    assert "allow_duplicate" in problem["advice"]
    body = {"text": "Keys are kept at the desk.", "name": "keys-2", "allow_duplicate": True}
    assert api.send(**body).status_code == 202


def test_a_deleted_document_is_hidden_at_once_and_leaves_a_receipt(api: Api) -> None:
    document_id = api.live(text="The old lift is out of order.", name="lift")
    answer = api.http.delete(f"/v1/documents/{document_id}")
    assert answer.status_code == 202
    texts = [h["text"] for h in api.search("lift out of order").json()["hits"]]
    assert "The old lift is out of order." not in texts
    until = time.monotonic() + 60
    while (found := api.http.get(f"/v1/documents/{document_id}").json())["receipt"] is None:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert found["state"] == "deleted"
    # The passage, its section and the document.
    assert found["receipt"]["before"]["chroma vector"] == 3
    assert found["receipt"]["before"]["chroma keyword"] == 3
    assert set(found["receipt"]["after"].values()) == {0}
    assert api.http.get(answer.json()["task_url"]).json()["state"] == "done"
    assert_problem(api.http.get(f"/v1/documents/{document_id}/text"), 404, "document-not-found")


@pytest.fixture
def other_api(stack: Stack) -> Iterator[Api]:
    with Api(stack) as api:
        yield api


def test_a_deleted_collection_is_gone_and_its_name_is_free(other_api: Api) -> None:
    api = other_api
    api.live(text="Nothing stays.", name="one")
    assert api.http.delete(f"/v1/collections/{api.collection}").status_code == 202
    assert_problem(api.search("nothing"), 404, "collection-not-found")
    until = time.monotonic() + 60
    while api.http.post("/v1/collections", json={"name": api.collection}).status_code != 201:
        assert time.monotonic() < until
        time.sleep(0.2)
    answer = api.search("nothing stays")
    assert answer.status_code == 200, answer.text
    assert answer.json()["hits"] == []


@pytest.mark.parametrize(
    ("body", "status", "slug"),
    [
        ({"text": ""}, 422, "empty-file"),
        ({}, 400, "invalid-request"),
        ({"text": 5}, 400, "invalid-request"),
        ({"text": "x", "colour": "red"}, 400, "invalid-request"),
        ({"text": "x", "properties": {"a": {"b": 1}}}, 400, "invalid-request"),
        ({"text": "x", "properties": {"section": "a"}}, 400, "invalid-request"),
        ({"text": "x", "properties": {"n": 1e400}}, 400, "invalid-request"),
        ({"text": "x", "name": "\x00"}, 400, "invalid-request"),
    ],
)
def test_a_bad_submission_is_a_problem_that_names_it(
    api: Api, body: dict[str, object], status: int, slug: str
) -> None:
    import json

    answer = api.http.post(
        f"/v1/collections/{api.collection}/documents",
        content=json.dumps(body),
        headers={"content-type": "application/json"},
    )
    assert_problem(answer, status, slug)


@pytest.mark.parametrize(
    ("more", "status", "slug"),
    [
        ({"query": ""}, 400, "empty-query"),
        ({"query": "   ?!"}, 400, "empty-query"),
        ({"query": "word " * 10_000}, 400, "query-too-long"),
        ({"query": "x", "top": 0}, 400, "invalid-request"),
        ({"query": "x", "top": 100_000}, 400, "invalid-request"),
        ({"query": "x", "alpha": 2}, 400, "invalid-request"),
        ({"query": "x", "fusion": "best"}, 400, "invalid-request"),
        ({"query": "x", "having_all": {}}, 400, "invalid-filter"),
        ({"query": "x", "having_all": {"a =>": 1}}, 400, "invalid-filter"),
        ({"query": "x", "having_all": {"a in": []}}, 400, "invalid-filter"),
        ({"query": "x", "having_any": {"a >": "text"}}, 400, "invalid-filter"),
        ({"query": "x", "collection": "nowhere"}, 404, "collection-not-found"),
        ({"query": "x", "limit": 5}, 400, "invalid-request"),
    ],
)
def test_a_bad_search_is_a_problem_that_names_it(
    api: Api, more: dict[str, object], status: int, slug: str
) -> None:
    request = {"collection": api.collection} | more
    assert_problem(api.http.post("/v1/search", json=request), status, slug)


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b"{", b"", b'{"collection":"x","query":"a \\ud800 b"}', b"[1]"]
)
@pytest.mark.parametrize("path", ["/v1/search", "/v1/collections"])
def test_what_is_not_a_json_object_is_a_bad_request(api: Api, path: str, body: bytes) -> None:
    answer = api.http.post(path, content=body, headers={"content-type": "application/json"})
    assert_problem(answer, 400, "invalid-request")


def test_a_form_with_parts_of_no_name_is_a_bad_request(api: Api) -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\na\r\n'
    others = (
        b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n"
        b'--x\r\nContent-Disposition: form-data; name="colour"\r\n\r\na\r\n--x--\r\n'
    )
    answer = api.http.post(
        f"/v1/collections/{api.collection}/documents",
        content=part + others,
        headers={"content-type": "multipart/form-data; boundary=x"},
    )
    assert_problem(answer, 400, "invalid-request")


def test_a_connection_goes_on_after_a_refused_upload(api: Api) -> None:
    for _ in range(10):
        answer = api.http.post(
            "/v1/collections/nowhere/documents", files={"file": ("a.txt", b"x" * 300_000)}
        )
        assert_problem(answer, 404, "collection-not-found")
        assert api.http.get("/healthz").status_code == 200


def test_a_wrong_method_names_the_right_ones(api: Api) -> None:
    answer = api.http.put("/healthz")
    assert_problem(answer, 405, "invalid-request")
    assert "GET" in answer.headers["allow"]


def test_an_origin_that_is_no_address_is_refused(api: Api) -> None:
    assert api.http.get("/healthz", headers={"origin": "http://["}).status_code == 403


def test_unknown_things_are_not_found(api: Api) -> None:
    for path, slug in [
        ("/v1/documents/nothing", "document-not-found"),
        ("/v1/tasks/nothing", "task-not-found"),
        (f"/v1/tasks/ingest-{'0' * 32}-1", "task-not-found"),
        ("/v1/collections/nowhere/documents", "collection-not-found"),
        ("/v1/nothing", "invalid-request"),
    ]:
        assert_problem(api.http.get(path), 404, slug)
    assert_problem(api.http.put("/v1/search"), 405, "invalid-request")
    assert_problem(api.http.post("/v1/collections", json={"name": "a b"}), 400, "invalid-request")
    assert_problem(
        api.http.post(f"/v1/collections/{api.collection}/documents", content=b"x"),
        400,
        "invalid-request",
    )


def test_a_file_that_is_too_large_is_refused_with_the_limit(api: Api) -> None:
    answer = api.upload("huge.txt", b"x" * 200_000_000)
    problem = assert_problem(answer, 413, "file-too-large")
    assert "100 MB" in problem["detail"]


@pytest.mark.parametrize(
    ("filename", "content", "slug"),
    [
        ("broken.pdf", b"%PDF-1.7 nothing follows", "broken-file"),
        ("program.bin", b"\x7fELF\x02\x01\x01" + bytes(64), "unsupported-type"),
        ("blank.txt", b" \n\n ", "no-text"),
        ("fake.docx", b"PK\x03\x04 not a zip", "broken-file"),
    ],
)
def test_a_bad_file_ends_as_failed_with_its_reason_and_others_go_on(
    api: Api, filename: str, content: bytes, slug: str
) -> None:
    answer = api.upload(filename, content, name=f"bad/{filename}")
    assert answer.status_code == 202, answer.text
    found = api.settled(answer.json()["document_id"])
    assert found["state"] == "failed"
    assert found["error"]["type"] == slug
    assert found["error"]["advice"]
    assert found["error"]["step"] == "extract"
    api.live(text=f"After {filename} came this.", name=f"after {filename}")


def test_a_failed_document_can_be_sent_again(api: Api) -> None:
    bad = api.upload("again.pdf", b"%PDF-1.7 broken").json()["document_id"]
    assert api.settled(bad)["state"] == "failed"
    good = api.upload("again.txt", b"Now it is plain text.", name="again.pdf")
    assert good.json()["document_id"] == bad
    assert api.settled(bad)["state"] == "live"


def test_text_in_another_encoding_is_read(api: Api) -> None:
    document_id = api.upload("cp949.txt", GRANT.encode("cp949"), allow_duplicate="true").json()[
        "document_id"
    ]
    assert api.settled(document_id)["state"] == "live"
    text = api.http.get(f"/v1/documents/{document_id}/text").json()["text"]
    assert text.strip() == GRANT


def test_pages_of_other_origins_are_refused(api: Api) -> None:
    answer = api.http.post("/v1/search", headers={"Origin": "http://elsewhere.example"}, json={})
    assert_problem(answer, 403, "invalid-request")
    answer = api.http.get("/healthz", headers={"Host": "rebound.example"})
    assert_problem(answer, 403, "invalid-request")


def test_readiness_names_every_queue(api: Api) -> None:
    parts = api.http.get("/readyz").json()["parts"]
    assert {name for name in parts if name.startswith("queue ")} == {
        *(
            "queue ingest",
            "queue embed",
            "queue upsert",
            "queue search",
            "queue answer",
            "queue adapters",
            "queue maintenance",
        )
    }
    assert all(part["ready"] for part in parts.values())

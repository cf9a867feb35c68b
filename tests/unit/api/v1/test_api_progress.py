"""Streams, batches and webhooks at the server, over a real ledger."""

import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from context_parts import LoneBroker, app_over
from flask.testing import FlaskClient
from ledger_moves import publish, store_chunks, submit, taken

from callslip.api.identity import guard, keys
from callslip.api.identity.state import identity_of
from callslip.api.v1 import events
from callslip.config.settings import ApiSettings, Settings
from callslip.errors import BrokenFile
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import Accepted, KeyGrant, Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.tasks import ingest

RECEIPT = {"before": {"blobs": 1}, "after": {"blobs": 0}}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    made = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.create()
    made.collections.create(
        CollectionSchema("papers", VectorSpec(4)), store="memory", embedder="tiny", analyzer="1"
    )
    monkeypatch.setattr(ingest, "send_all", lambda *_: True)
    monkeypatch.setattr(events, "POLL_SECONDS", 0.01)
    yield made
    made.close()


@pytest.fixture
def client(ledger: Ledger, tmp_path: Path) -> FlaskClient:
    return client_of(ledger, tmp_path, Settings())


def client_of(ledger: Ledger, tmp_path: Path, settings: Settings) -> FlaskClient:
    blobs = Blobs(str(tmp_path / "blobs"))
    parts = {"ledger": ledger, "blobs": blobs, "broker": LoneBroker()}
    return app_over(settings, **parts).test_client()


def follow(client: FlaskClient, item: Accepted, last: int | None = None) -> list[dict[str, str]]:
    """The frames of a stream that ends by itself."""
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    with client.get(f"/v1/documents/{item.document_id}/events", headers=headers) as answer:
        assert answer.status_code == 200, answer.text
        assert answer.content_type == "text/event-stream"
        first, *frames = answer.text.rstrip("\n").split("\n\n")
    assert first == "retry: 2000"
    return [dict(line.split(": ", 1) for line in f.splitlines()) for f in frames if f[0] != ":"]


def test_a_stream_tells_every_step_and_ends_when_the_document_is_live(
    client: FlaskClient, ledger: Ledger
) -> None:
    item = submit(ledger)
    upsert = store_chunks(ledger, item, ["c1"])
    timer = threading.Timer(0.2, lambda: ledger.leases.go_live(upsert, ["c1"], {"chunks": 1}))
    timer.start()
    frames = follow(client, item)
    timer.join()
    assert [f["event"] for f in frames[:2]] == ["document.queued", "step.started"]
    assert [f["event"] for f in frames[-3:]] == ["step.finished", "document.live", "end"]
    assert json.loads(frames[-1]["data"]) == {"state": "live"}
    assert "id" not in frames[-1]
    output = json.loads(frames[-3]["data"])
    assert (output["kind"], output["step"], output["data"]) == (
        "step.finished",
        "upsert",
        {"chunks": 1},
    )
    ids = [int(f["id"]) for f in frames[:-1]]
    again = follow(client, item, last=ids[4])
    assert [int(f["id"]) for f in again[:-1]] == ids[5:], "nothing twice, nothing lost"


def test_a_stream_begins_with_the_newest_version(client: FlaskClient, ledger: Ledger) -> None:
    publish(ledger, "one", ["c1"])
    item = publish(ledger, "two", ["c2"])
    versions = {json.loads(f["data"])["version"] for f in follow(client, item)[:-3]}
    assert versions == {2}


def test_a_stream_of_a_failed_document_ends_with_the_reason(
    client: FlaskClient, ledger: Ledger
) -> None:
    item = submit(ledger)
    ledger.leases.fail(taken(ledger, item), BrokenFile("it broke"))
    *_, failed, end = follow(client, item)
    assert json.loads(failed["data"])["data"]["advice"]
    assert json.loads(end["data"]) == {"state": "failed"}


def test_a_stream_of_a_deleted_document_ends_when_nothing_is_left(
    client: FlaskClient, ledger: Ledger
) -> None:
    item = publish(ledger, "one", ["c1"])
    ledger.documents.delete(item.document_id)
    timer = threading.Timer(0.2, lambda: ledger.documents.removed(item.document_id, RECEIPT))
    timer.start()
    frames = follow(client, item)
    timer.join()
    assert [f["event"] for f in frames[-3:]] == ["document.deleted", "document.removed", "end"]
    assert json.loads(frames[-2]["data"])["data"] == RECEIPT


def test_a_browser_that_saw_the_end_is_told_not_to_come_back(
    client: FlaskClient, ledger: Ledger
) -> None:
    item = publish(ledger, "one", ["c1"])
    seen = follow(client, item)[-2]["id"]
    url = f"/v1/documents/{item.document_id}/events"
    assert client.get(url, headers={"Last-Event-ID": seen}).status_code == 204
    assert client.get(url, headers={"Last-Event-ID": "x"}).status_code == 400
    ledger.events.trim(2e10)
    assert [f["event"] for f in follow(client, item)] == ["end"], "its events are forgotten"


def test_a_document_that_goes_with_its_collection_ends_its_stream(
    client: FlaskClient, ledger: Ledger
) -> None:
    item = submit(ledger)

    def forget() -> None:
        ledger.collections.delete("papers")
        ledger.collections.forget("papers")

    timer = threading.Timer(0.2, forget)
    timer.start()
    assert json.loads(follow(client, item)[-1]["data"]) == {"state": "deleted"}
    timer.join()


def test_a_stream_ends_when_its_key_is_revoked(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "RECHECK_SECONDS", 0.0)
    monkeypatch.setattr(keys, "CACHED_SECONDS", 0.0)
    client, item = client_of(ledger, tmp_path, Settings()), submit(ledger)
    text, _ = ledger.api_keys.create("reader", KeyGrant(frozenset({"read"})))
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {text}"
    path = f"/v1/documents/{item.document_id}/events"
    with client.get(path, buffered=False) as answer:
        blocks = iter(answer.response)
        assert next(blocks).startswith(b"retry")
        assert b"document.queued" in next(blocks)
        ledger.api_keys.revoke("reader")
        assert list(blocks) == []
    assert client.get(path).status_code == 401
    identity_of(client.application).close()


def test_there_are_only_so_many_streams_and_each_gives_its_place_back(
    tmp_path: Path, ledger: Ledger
) -> None:
    client = client_of(ledger, tmp_path, Settings(api=ApiSettings(streams=2)))
    item = submit(ledger)
    url = f"/v1/documents/{item.document_id}/events"
    first, second = client.get(url), client.get(url)
    refused = client.get(url)
    assert refused.status_code == 503
    assert refused.headers["Retry-After"]
    assert "api.streams" in refused.get_json()["advice"]
    first.close()  # whether or not it was read
    next(second.iter_encoded())
    third = client.get(url)
    assert third.status_code == 200
    second.close()
    third.close()
    client.head(url).close()
    assert events._slots._taken == 0


def test_a_silent_stream_says_now_and_then_that_it_is_there_and_ends_in_time(
    client: FlaskClient, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(events, "LONGEST_SECONDS", 0.5)
    item = submit(ledger)
    with client.get(f"/v1/documents/{item.document_id}/events") as answer:
        assert answer.text.count(": nothing new\n\n") >= 2
        assert "event: end" not in answer.text, "the caller comes back"


def send(client: FlaskClient, name: str, **more: object) -> dict[str, object]:
    body = {"text": f"text of {name}", "name": name} | more
    answer = client.post("/v1/collections/papers/documents", json=body)
    assert answer.status_code in (200, 202), answer.text
    found: dict[str, object] = answer.get_json()
    return found


def test_submissions_that_name_a_batch_are_counted_in_it(
    client: FlaskClient, ledger: Ledger
) -> None:
    made = client.post("/v1/batches", json={"expected": 5}).get_json()
    name = made["batch_id"]
    sent = [send(client, n, batch=name) for n in "abc"]
    answer = client.post(
        "/v1/collections/papers/documents",
        data={"file": (io.BytesIO(b"text"), "x.txt"), "batch": name},
    )
    assert answer.status_code == 202, answer.text
    assert send(client, "a", batch=name)["outcome"] == "unchanged"
    broken = Accepted(str(sent[1]["document_id"]), 1, True)
    ledger.leases.fail(taken(ledger, broken), BrokenFile("it broke"))
    found = client.get(f"/v1/batches/{name}").get_json()
    assert found["states"] == {"waiting": 3, "failed": 1}
    assert (found["submitted"], found["expected"], found["left"]) == (4, 5, 4)
    assert found["seconds_left"] is None
    (failed,) = found["failures"]
    assert (failed["name"], failed["error"]["type"]) == ("b", "broken-file")
    url = f"/v1/batches/{name}/documents"
    first = client.get(url, query_string={"limit": 3}).get_json()
    rest = client.get(url, query_string={"after": first["next_after"]}).get_json()
    assert len(first["documents"] + rest["documents"]) == 4
    assert rest["next_after"] is None
    only = client.get(url, query_string={"state": "failed"}).get_json()["documents"]
    assert [d["document_id"] for d in only] == [broken.document_id]


@pytest.mark.parametrize("name", ["a b", "../x", "x" * 65, "<script>"])
def test_a_batch_has_a_plain_name(client: FlaskClient, name: str) -> None:
    assert client.post("/v1/batches", json={"batch_id": name}).status_code == 400
    body = {"text": "x", "batch": name}
    assert client.post("/v1/collections/papers/documents", json=body).status_code == 400
    form = {"file": (io.BytesIO(b"text"), "x.txt"), "batch": name}
    assert client.post("/v1/collections/papers/documents", data=form).status_code == 400


def test_a_batch_that_nobody_made_is_a_problem(client: FlaskClient) -> None:
    for url in ("/v1/batches/nothing", "/v1/batches/nothing/documents"):
        answer = client.get(url)
        assert answer.status_code == 404
        assert answer.get_json()["type"].endswith(":batch-not-found")
    assert client.get("/v1/batches/nothing/documents?after=x").status_code == 400


def test_a_webhook_shows_its_secret_once(client: FlaskClient, ledger: Ledger) -> None:
    wanted = {"url": "https://8.8.8.8/hook", "collection": "papers", "events": ["document.live"]}
    answer = client.post("/v1/webhooks", json=wanted)
    assert answer.status_code == 201, answer.text
    made = answer.get_json()
    assert made["secret"].startswith("whsec_")
    url = f"/v1/webhooks/{made['webhook_id']}"
    (listed,) = client.get("/v1/webhooks").get_json()["webhooks"]
    assert listed == client.get(url).get_json() == {k: made[k] for k in listed}
    assert "secret" not in listed
    item = publish(ledger, "one", ["c1"])
    ledger.webhooks.fan_out()
    (delivery,) = client.get(f"{url}/deliveries").get_json()["deliveries"]
    assert (delivery["type"], delivery["state"]) == ("document.live", "waiting")
    assert delivery["document_id"] == item.document_id
    assert client.get(f"{url}/deliveries?state=delivered").get_json()["deliveries"] == []
    retry = f"{url}/deliveries/{delivery['delivery_id']}/retry"
    assert client.post(retry).status_code == 202
    assert client.post(f"{url}/deliveries/msg_0/retry").status_code == 404
    ledger.webhooks.stop(made["webhook_id"])
    assert client.post(retry).status_code == 409
    assert client.delete(url).status_code == 200
    assert client.get(f"{url}/deliveries").status_code == 404


@pytest.mark.long
@pytest.mark.parametrize(
    ("wanted", "slug"),
    [
        ({"url": "http://127.0.0.1:8000/"}, "address-not-allowed"),
        ({"url": "http://localhost/"}, "address-not-allowed"),
        ({"url": "http://[::ffff:10.0.0.1]/"}, "address-not-allowed"),
        ({"url": "http://169.254.169.254/latest/meta-data"}, "address-not-allowed"),
        *(
            ({"url": url}, "invalid-request")
            for url in ("", "x", "file:///etc/passwd", "http://", "http://[::1", "http://a b/")
        ),
        ({"url": "https://u:p@8.8.8.8/"}, "invalid-request"),
        ({"url": "https://8.8.8.8:99999/"}, "invalid-request"),
        ({"url": "https://8.8.8.8:0/"}, "invalid-request"),
        ({"url": "https://8.8.8.8/", "collection": "nowhere"}, "collection-not-found"),
        ({"url": "https://8.8.8.8/", "collection": "\ud800"}, "invalid-request"),
        ({"url": "https://8.8.8.8/", "events": []}, "invalid-request"),
        ({"url": "https://8.8.8.8/", "events": ["document.lives"]}, "invalid-request"),
        ({"url": "https://8.8.8.8/", "secret": "whsec_c2hvcnQ="}, "invalid-request"),
    ],
)
def test_a_webhook_that_cannot_be_is_refused(
    client: FlaskClient, wanted: dict[str, object], slug: str
) -> None:
    body = json.dumps(wanted)
    answer = client.post("/v1/webhooks", data=body, content_type="application/json")
    assert answer.get_json()["type"] == f"urn:callslip:problem:{slug}", answer.text
    assert client.get("/v1/webhooks").get_json()["webhooks"] == []


@pytest.mark.parametrize(
    "host", ["xn--", "XN--", "xn--zzzzzzzz99999", "xn--a", "a\u200d.org", "[v1.x]"]
)
def test_a_webhook_for_a_host_that_cannot_be_read_is_refused(
    client: FlaskClient, host: str
) -> None:
    answer = client.post("/v1/webhooks", json={"url": f"https://{host}/"})
    assert answer.status_code == 400, answer.text
    assert answer.get_json()["detail"].startswith("url cannot be read: Invalid ")


@pytest.mark.parametrize("field", ["collection", "tenant", "reason", "document_ids"])
def test_half_a_character_selects_no_dead_letters(client: FlaskClient, field: str) -> None:
    value: Any = ["\ud800"] if field == "document_ids" else "\ud800"
    body = json.dumps({field: value})
    answer = client.post("/v1/dead-letters/retry", data=body, content_type="application/json")
    assert answer.status_code == 400
    assert field in answer.get_json()["detail"]


DOCUMENTS = "/v1/collections/papers/documents"


@pytest.mark.long
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"readers": (b'["group:hr"]', "r.json"), "name": (b"a", "n")}, "not 'name', 'readers'"),
        ({"readers": ["everyone", "group:hr"]}, "2 parts named readers"),
        ({"name": ["a", "b", "c"]}, "3 parts named name"),
        ({"file": "Another text."}, "2 parts named file"),
        ({"file": (b"Another file.", "b.txt")}, "2 parts named file"),
        ({"properties": '{"a": 1, "a": 2}'}, "'a' is there twice"),
        ({"properties": '{"a": ' + "9" * 5000 + "}"}, "properties has a number with too many"),
        ({"properties": "{"}, "properties is not JSON"),
        ({"properties": "[" * 100_000}, "properties is nested too deeply"),
        ({"readers": "[" + "9" * 5000 + "]"}, "readers has a number with too many"),
        ({"priority": "٣"}, "priority is not a whole number"),
        ({"priority": "1_0"}, "priority is not a whole number"),
        ({"title": "\x00"}, "the title is empty"),
        (
            {"title": "caf\ufffd"},
            "the part named title has U+FFFD",
        ),
        ({"readers": '["group:\ufffd"]'}, "the part named readers has U+FFFD"),
        ({"title": "x" * 5000}, "the title has 5000 characters"),
        ({"tenant": "\x00"}, "the tenant's name is empty"),
        ({"tenant": "x" * 5000}, "the tenant's name has 5000 characters, at most 64"),
        ({"name": "\x00"}, "the name is empty"),
    ],
)
def test_a_form_that_can_mean_another_document_is_refused(
    client: FlaskClient, ledger: Ledger, fields: dict[str, Any], words: str
) -> None:
    form: dict[str, list[Any]] = {"file": [(io.BytesIO(b"The canteen opens."), "a.txt")]}
    for name, value in fields.items():
        for each in value if isinstance(value, list) else [value]:
            sent = (io.BytesIO(each[0]), each[1]) if isinstance(each, tuple) else each
            form.setdefault(name, []).append(sent)
    answer = client.post(DOCUMENTS, data=form)
    output = answer.get_json()
    assert answer.status_code == 400
    assert words in output["detail"]
    assert "sys." not in answer.text
    assert ledger.documents.find("papers") == []


@pytest.mark.parametrize(
    "body",
    [
        '{"text": "a", "readers": ["group:hr"], "readers": ["everyone"]}',
        '{"text": "a", "properties": {"readers": 1, "readers": 2}}',
    ],
)
def test_json_with_a_name_twice_is_refused(client: FlaskClient, ledger: Ledger, body: str) -> None:
    answer = client.post(DOCUMENTS, data=body, content_type="application/json")
    assert answer.status_code == 400
    assert "'readers' is there twice" in answer.get_json()["detail"]
    assert ledger.documents.find("papers") == []


def test_a_form_whose_names_are_not_utf_8_is_told_so(client: FlaskClient) -> None:
    form = (
        b'--B\r\nContent-Disposition: form-data; name="file"; filename="\xc8\xde\xb0\xa1.txt"\r\n'
        b"\r\nLeave lasts long.\r\n--B--\r\n"
    )
    kind = "multipart/form-data; boundary=B"
    answer = client.post(DOCUMENTS, data=form, content_type=kind)
    output = answer.get_json()
    assert answer.status_code == 400
    assert "UTF-8" in output["advice"]

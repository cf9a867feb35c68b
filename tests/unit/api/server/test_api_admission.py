"""What the API refuses by the headers of a request alone, before its body arrives."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from context_parts import LoneBroker, app_over
from flask import Flask
from pydantic import SecretStr
from served import rest, served
from werkzeug.test import EnvironBuilder

from callslip.api.http.admission import MOST_JSON, SMALL_JSON, refusal
from callslip.api.identity import limits
from callslip.api.identity.state import identity_of
from callslip.config import Settings, get_settings
from callslip.config.settings import ApiSettings
from callslip.errors import BacklogFull
from callslip.stores.ledger import KeyGrant, KeyLimits, Ledger
from callslip.tasks.composition import Context

KEY = "a=b/c+d~0123"

LARGE_OR_NO_JSON = {
    *("annotator.process_and_upload_doc", "annotator.return_candidates", "annotator.upload_file"),
    *("annotator.vectorize_documents", "chunk_pages.correct_chunk", "chunks.correct_chunks"),
    *("collections.create_collection", "collections.set_options", "documents.change_document"),
    *("documents.list_unchanged", "documents.submit_document", "editing.restore_version"),
    *("editing.save_document", "faq.remove_rows", "faq.write_rows", "invokers.invoke"),
    *("login.login", "login.logout", "memory.import_memory", "pages.answer_live"),
    *("previews.preview_chunks", "proposals.decide_on_page", "webhooks.retry_delivery"),
}


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Flask]:
    for name in [name for name in os.environ if name.startswith("CALLSLIP_")]:
        monkeypatch.delenv(name)
    get_settings.cache_clear()
    yield app_over(Settings(api=ApiSettings(key=SecretStr(KEY), max_upload_mb=2)))
    get_settings.cache_clear()


def status(app: Flask, method: str, path: str, length: int = 10, **headers: str) -> int | None:
    environ: dict[str, Any] = EnvironBuilder(path, method=method, headers=headers).get_environ()
    environ |= {"HTTP_HOST": "127.0.0.1:8765", "wsgi.input": BytesIO()}
    environ["CONTENT_LENGTH"] = str(length)
    refused = refusal(app, environ)
    return None if refused is None else refused.status_code


def test_origin_key_route_method_and_size_are_checked_before_the_body(locked: Flask) -> None:
    good = {"Authorization": f"Bearer {KEY}"}
    upload = "/v1/collections/any/documents"
    assert status(locked, "POST", upload, 2_000_000, **good) is None
    assert status(locked, "POST", upload) == 401
    assert status(locked, "POST", upload, **good, Origin="http://elsewhere") == 403
    assert status(locked, "POST", "/v1/no/such/route", **good) == 404
    assert status(locked, "PUT", upload, **good) == 405
    assert status(locked, "POST", upload, 3_000_001, **good) == 413


def test_the_json_of_a_request_without_texts_is_small(locked: Flask) -> None:
    good = {"Authorization": f"Bearer {KEY}"}
    sent = {**good, "Content-Type": "application/json"}
    for path in ("/v1/search", "/v1/webhooks", "/v1/feedback"):
        assert status(locked, "POST", path, MOST_JSON, **sent) is None
        assert status(locked, "POST", path, MOST_JSON + 1, **sent) == 413
    upload = "/v1/collections/any/documents"
    assert status(locked, "POST", upload, MOST_JSON + 1, **sent) is None
    client = locked.test_client()
    whole = client.post("/v1/search", data=b" " * MOST_JSON + b"{}", headers=sent)
    assert whole.status_code == 413
    assert whole.get_json()["detail"] == "the JSON is larger than 2 MB, the most for this request"


def test_large_json_in_chunks_is_refused_too(locked: Flask) -> None:
    block = b"%x\r\n%b\r\n" % (MOST_JSON, b" " * MOST_JSON)
    head = "POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1:8765\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nAuthorization: Bearer {KEY}\r\n"
    head += "Transfer-Encoding: chunked\r\n\r\n"
    with served(locked, ApiSettings()) as server:
        for more, code in ((b"", 400), (b"2\r\n{}\r\n", 413)):
            answer = server.exchange(head.encode() + block + more + b"0\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 %d " % code)


def test_every_route_has_a_decision_about_the_size_of_its_json(locked: Flask) -> None:
    changing = {
        rule.endpoint
        for rule in locked.url_map.iter_rules()
        if {"POST", "PUT", "PATCH"} & (rule.methods or set())
    }
    assert changing - SMALL_JSON == LARGE_OR_NO_JSON
    assert changing > SMALL_JSON


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip"])
def test_a_body_in_a_content_coding_is_refused(locked: Flask, coding: str) -> None:
    good = {"Authorization": f"Bearer {KEY}", "Content-Encoding": coding}
    refused = locked.test_client().post("/v1/search", json={"query": "a"}, headers=good)
    assert refused.status_code == 415
    assert "Content-Encoding" in refused.get_json()["detail"]
    assert status(locked, "POST", "/v1/search", **good) == 415
    for allowed in ("Identity", " identity ", ""):
        assert status(locked, "POST", "/v1/search", **good | {"Content-Encoding": allowed}) is None
    assert locked.test_client().get("/v1/collections", headers=good).status_code == 200


def test_a_rate_counts_a_request_once_when_its_headers_have_arrived(tmp_path: Path) -> None:
    now = int(time.time())
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger, ExitStack() as stack:
        ledger.create()
        grant = KeyGrant(frozenset({"read"}), limits=KeyLimits(requests_per_minute=3))
        text, _ = ledger.api_keys.create("quick", grant)
        app = app_over(Settings(data_dir=tmp_path), ledger=ledger, broker=LoneBroker())
        stack.callback(identity_of(app).close)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(limits, "MINUTE", 10 * now)  # the test is within one
        server = stack.enter_context(served(app, ApiSettings()))
        head = "POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Length: 2\r\n"
        head += f"Content-Type: application/json\r\nAuthorization: Bearer {text}\r\n"
        for code in (400, 400, 400, 429, 429):
            with server.connect() as client:
                client.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
                answer = client.recv(1 << 16)
                if code == 400:
                    assert answer == b"HTTP/1.1 100 Continue\r\n\r\n"
                    client.sendall(b"{}")
                    answer = client.recv(1 << 16)
                assert answer.startswith(b"HTTP/1.1 %d " % code)


def test_a_full_backlog_is_answered_before_the_body(
    locked: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Context) -> None:
        raise BacklogFull("too much waits", retry_after=7)

    monkeypatch.setattr("callslip.tasks.ingest.check_backlog", full)
    good = {"Authorization": f"Bearer {KEY}"}
    assert status(locked, "POST", "/v1/collections/any/documents", **good) == 429
    assert status(locked, "POST", "/v1/collections/any/documents") == 401
    assert status(locked, "POST", "/v1/search", **good) is None


def test_a_request_without_the_key_is_refused_while_its_body_is_on_the_way(locked: Flask) -> None:
    size, sent, block = 90_000_000, 0, bytes(1 << 16)
    head = "POST /v1/collections/any/documents HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"
    head += f"Content-Type: text/plain\r\nContent-Length: {size}\r\n\r\n"
    with served(locked, ApiSettings()) as server, server.connect() as client:
        before = time.monotonic()
        client.sendall(head.encode())
        answer = client.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b"\r\nConnection: close\r\n" in answer
        assert time.monotonic() - before < 1
        client.settimeout(0.1)
        try:
            while sent < size:
                sent += client.send(block)
        except OSError:
            pass  # the server has closed the connection
        assert sent < 20_000_000
        rest(client)

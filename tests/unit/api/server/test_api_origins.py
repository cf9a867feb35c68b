"""What the server lets the browsers of its users do for pages of other sites."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from context_parts import app_over
from flask.testing import FlaskClient
from page_parts import answers, blobs_in, make_collection, shelved

from callslip.api.page import pages
from callslip.config import Settings
from callslip.errors import AnswerTimeout
from callslip.stores.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with shelved(tmp_path) as made:
        yield make_collection(made)


@pytest.fixture
def client(ledger: Ledger, tmp_path: Path) -> FlaskClient:
    return app_over(ledger=ledger, blobs=blobs_in(tmp_path)).test_client()


def called(name: str, **api: Any) -> int:
    client = app_over(Settings.model_validate({"api": api})).test_client()
    return client.get("/healthz", headers={"Host": name}).status_code


@pytest.mark.long
@pytest.mark.parametrize("listens", ["127.0.0.1", "::1", "0.0.0.0", "::", "10.0.0.5", "docs.lan"])  # noqa: S104
def test_a_name_that_is_none_of_the_server_is_refused_wherever_it_listens(listens: str) -> None:
    for name in ("rebound.example", "rebound.example:8765", "127.0.0.1.rebound.example", "[", ""):
        assert called(name, host=listens) in (400, 403), name
    assert called("localhost:8765", host=listens) == 200
    assert called("[::1]:8765", host=listens) == 200


def test_names_of_the_settings_are_names_of_the_server() -> None:
    hosts = "docs.example.org, API"
    for listens in ("127.0.0.1", "0.0.0.0"):  # noqa: S104
        assert called("docs.example.org", host=listens, hosts=hosts) == 200
        assert called("api:8765", host=listens, hosts=hosts) == 200
        assert called("public.example", host=listens, url="https://public.example/") == 200
        assert called("other.example.org", host=listens, hosts=hosts) == 403
    assert called("docs.lan:8765", host="docs.lan") == 200


def test_an_address_is_a_name_where_others_reach_the_server() -> None:
    """A probe calls a container by its address; a page of another site cannot have one."""
    assert called("10.1.2.3:8765", host="0.0.0.0") == 200  # noqa: S104
    assert called("[fd00::1]:8765", host="::") == 200
    assert called("10.1.2.3:8765", host="127.0.0.1") == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_form_of_another_site_is_refused(client: FlaskClient, site: str) -> None:
    headers = {"Sec-Fetch-Site": site}
    body = {"name": "foreign"}
    assert client.post("/v1/collections", json=body, headers=headers).status_code == 403
    assert client.get("/", headers=headers).status_code == 200, "a link leads to the page"


def test_the_page_has_a_token_and_changes_without_it_are_refused(client: FlaskClient) -> None:
    first = client.get("/")
    (token,) = re.findall(r'<meta name="csrf-token" content="([\w-]{22})">', first.text)
    cookie = first.headers["Set-Cookie"]
    assert cookie.startswith(f"callslip_csrf={token};")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    again = client.get("/page/compare")
    assert token in again.text, "one token for all pages that are open"
    assert "Set-Cookie" not in again.headers
    for headers in ({}, {"X-CSRF-Token": "other"}, {"X-CSRF-Token": "é"}):
        refused = client.post("/v1/collections", json={"name": "new"}, headers=headers)
        assert refused.status_code == 403
        assert "X-CSRF-Token" in refused.json["detail"]
    made = client.post("/v1/collections", json={"name": "new"}, headers={"X-CSRF-Token": token})
    assert made.status_code != 403


def test_only_a_page_puts_questions_to_the_agent_for_a_page(client: FlaskClient) -> None:
    assert client.post("/page/answer", data={"q": "leave"}).status_code == 403, "no cookie"


@pytest.mark.long
@pytest.mark.parametrize(
    ("headers", "answered"),
    [
        ({}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "none"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Referer": "http://localhost/"}, False),
        ({"Referer": "http://elsewhere.example/?localhost"}, False),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Referer": "http://localhost/?q=before"}, True),
    ],
)
def test_a_link_puts_no_question_to_the_agent(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], answered: bool
) -> None:
    asks: list[object] = []
    searches = answers(monkeypatch)

    def ask(question: object, *, again: bool) -> None:
        asks.append(question)
        raise AnswerTimeout("no agent is here")

    monkeypatch.setattr(pages.answering, "ask", ask)
    page = client.get("/?q=leave&ask=1", headers=headers)
    assert len(asks) == answered
    if not answered:
        assert page.status_code == 200
        assert 'value="leave"' in page.text
        assert "was not put to a model" not in page.text, "none is configured"
        assert page.text.index("The question is not answered yet") < page.text.index("card hit")
        assert len(searches) == 1, "the search costs nothing here"


def test_a_link_to_an_answer_says_that_a_model_would_cost_tokens(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch)
    settings = Settings.model_validate({"llm": {"base_url": "http://127.0.0.1:9", "model": "m"}})
    client = app_over(settings, ledger=ledger, blobs=blobs_in(tmp_path)).test_client()
    page = client.get("/?q=leave&ask=1", headers={"Sec-Fetch-Site": "none"}).text
    assert page.index("was not put to a model") < page.index("card hit")


def test_where_a_search_costs_tokens_a_link_runs_none(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = answers(monkeypatch)
    rerank = {"provider": "api", "url": "http://127.0.0.1:9/rerank"}
    settings = Settings.model_validate({"rerank": rerank})
    client = app_over(settings, ledger=ledger, blobs=blobs_in(tmp_path)).test_client()
    for path in ("/?q=leave", "/page/compare?q=leave&collection=papers"):
        page = client.get(path, headers={"Sec-Fetch-Site": "cross-site"})
        assert page.status_code == 200
        assert "was not put to a model" in page.text
    assert searches == []
    client.get("/?q=leave", headers={"Sec-Fetch-Site": "same-origin"})
    assert len(searches) == 1


def test_every_response_has_the_headers_and_only_static_files_are_stored(
    client: FlaskClient,
) -> None:
    for path in ("/", "/healthz", "/v1/collections", "/v1/none", "/static/page.css"):
        with client.get(path) as response:
            headers = response.headers
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "geolocation=()" in headers["Permissions-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert (headers["Cache-Control"] == "no-store") is (path != "/static/page.css")

"""One key for the server: what is asked for it, and how it is sent."""

import os
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from context_parts import app_over
from flask.testing import FlaskClient
from pydantic import SecretStr, ValidationError

from callslip.api.http.description import described
from callslip.cli.commands.installation import doctor
from callslip.client import Client
from callslip.config import Loaded, Settings, get_settings
from callslip.config.settings import ApiSettings
from callslip.errors import KeyRefused
from callslip.evals.client import JsonClient

KEY = "a=b/c+d~0123"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("CALLSLIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CALLSLIP_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    monkeypatch.setenv("CALLSLIP_API__KEY", KEY)
    return app_over().test_client()


def basic(user: bytes, password: bytes) -> str:
    return f"Basic {b64encode(user + b':' + password).decode()}"


@pytest.mark.parametrize(
    "header",
    [
        f"Bearer {KEY}",
        f"bearer  {KEY} ",
        basic(b"", KEY.encode()),
        basic("누구나".encode(), KEY.encode()),
    ],
)
def test_the_key_opens_the_server(locked: FlaskClient, header: str) -> None:
    assert locked.get("/openapi.json", headers={"Authorization": header}).status_code == 200


@pytest.mark.long
@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {KEY[:-1]}",
        f"Bearer {KEY}x",
        f"Bearer {KEY}, Bearer {KEY}",
        f"Token {KEY}",
        KEY,
        "Bearer 열쇠".encode().decode("latin-1"),
        "Bearer \xff\xfe",
        "Basic",
        "Basic ===",
        "Basic 열쇠".encode().decode("latin-1"),
        basic(b"", b""),
        basic(KEY.encode(), b"user"),
        basic(b"user", "열쇠".encode()),
        basic(b"user", b"\xff"),
        f"Basic {b64encode(KEY.encode()).decode()}",
    ],
)
def test_without_the_key_every_route_is_a_401_problem(
    locked: FlaskClient, header: str | None
) -> None:
    headers = {} if header is None else {"Authorization": header}
    for path in ("/", "/metrics", "/openapi.json", "/v1/collections", "/page/documents", "/none"):
        answer = locked.get(path, headers=headers)
        assert answer.status_code == 401
        assert answer.content_type == "application/problem+json"
        assert answer.json["type"] == "urn:callslip:problem:key-refused"
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="Callslip"'
        assert KEY not in answer.text


def test_a_browser_is_led_to_the_login(locked: FlaskClient) -> None:
    answer = locked.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (answer.status_code, answer.location) == (302, "/login")
    page = locked.get("/login").text
    assert "callslip keys create NAME --permission admin" in page
    assert "CALLSLIP_DATA_DIR" in page


@pytest.mark.parametrize(
    ("sent", "led"),
    [
        ("/?q=what?", "/login?next=/?q%3Dwhat?"),
        ("/?q=%FF", "/login?next=/?q%3D%25FF"),
        ("/?", "/login"),
    ],
)
def test_the_login_gets_the_address_that_leads_back(
    locked: FlaskClient, sent: str, led: str
) -> None:
    assert locked.get(sent, headers={"Accept": "text/html"}).location == led


def test_an_address_of_any_bytes_leads_to_the_login(locked: FlaskClient) -> None:
    answer = locked.get(
        "/", headers={"Accept": "text/html"}, environ_overrides={"QUERY_STRING": "q=\xff\xfe"}
    )
    assert answer.status_code == 302
    assert answer.location.startswith("/login?next=")


@pytest.mark.parametrize("path", ["/logout", "/page/corrections", "/v1/batches"])
def test_a_form_that_is_sent_after_the_session_stays_in_the_browser(
    locked: FlaskClient, path: str
) -> None:
    answer = locked.post(path, data={"text": "x"}, headers={"Accept": "text/html"})
    if path == "/logout":
        assert (answer.status_code, answer.location) == (303, "/login")
    else:
        assert (answer.status_code, answer.mimetype) == (401, "text/html")
        assert "Nothing was changed." in answer.text
        assert 'href="/login" target="_blank"' in answer.text


def test_a_program_gets_a_problem_for_what_a_browser_gets_a_page(locked: FlaskClient) -> None:
    for accepted in ("*/*", "application/json"):
        answer = locked.post("/page/corrections", headers={"Accept": accepted})
        assert (answer.status_code, answer.mimetype) == (401, "application/problem+json")


def test_health_probes_need_no_key_and_nothing_that_looks_like_them_is_open(
    locked: FlaskClient,
) -> None:
    assert locked.get("/healthz").status_code == 200
    for path in ("/healthz/", "/healthz/../metrics", "/readyz/x", "/HEALTHZ"):
        assert locked.get(path).status_code == 401, path
    assert locked.post("/healthz").status_code == 401


def test_a_server_without_a_key_asks_for_none() -> None:
    assert app_over().test_client().get("/openapi.json").status_code == 200


def test_the_description_has_the_schemes_and_asks_where_the_server_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = described(app_over())
    assert set(document["components"]["securitySchemes"]) == {"bearer", "basic"}
    assert "security" not in document
    monkeypatch.setenv("CALLSLIP_API__KEY", KEY)
    get_settings.cache_clear()
    document = described(app_over())
    assert document["security"] == [{"bearer": []}, {"basic": []}]
    assert document["paths"]["/healthz"]["get"]["security"] == []
    assert "security" not in document["paths"]["/metrics"]["get"]


@pytest.mark.parametrize("key", ["short", "a key with spaces", "열쇠열쇠열쇠열쇠", "line\nline\n"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(ValidationError, match="8 or more characters of ASCII"):
        ApiSettings(key=SecretStr(key))


def answering(seen: list[str | None], status: int = 200) -> Callable[[httpx.Request], object]:
    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Authorization"))
        return httpx.Response(status, json={"version": "1", "parts": {}})

    return answer


def test_the_clients_send_the_key_and_another_one_where_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str | None] = []
    transport = httpx.MockTransport(answering(seen))  # type: ignore[arg-type]
    made = httpx.Client

    def client(**given: object) -> httpx.Client:
        return made(**given | {"transport": transport})  # type: ignore[arg-type]

    monkeypatch.setattr(httpx, "Client", client)
    with Client("http://server", key=SecretStr(KEY)) as server:
        server.request_json("GET", "/v1/collections")
        list(server.request_lines("/v1/lines"))
        server.with_key("other").request_json("POST", "/v1/search", json={})
        server.with_key(None).request_json("POST", "/v1/search", json={})
    with Client("http://server") as server:
        server.request_json("GET", "/v1/collections")
    with JsonClient("http://server", key=SecretStr(KEY)) as judged:
        judged.get("/v1/collections")
    keyed = f"Bearer {KEY}"
    assert seen == [keyed, keyed, "Bearer other", None, None, keyed]


def test_a_refusal_is_an_error_with_advice(locked: FlaskClient) -> None:
    served = httpx.Client(transport=httpx.WSGITransport(locked.application))
    client = Client("http://127.0.0.1", http=served)
    with client, pytest.raises(KeyRefused, match="carries no key") as refused:
        client.list_collections()
    assert "api.key" in refused.value.advice


def test_doctor_does_not_send_to_the_log_of_a_server_that_is_not_ours() -> None:
    assert "CALLSLIP_CRATE__URL" in doctor._advice("store crate")
    assert "logs" in doctor._advice("store chroma")


def test_doctor_warns_of_a_server_that_asks_for_no_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor, "_embedder", lambda _: "none")

    def warnings(**api: object) -> list[str]:
        settings = Settings(data_dir=tmp_path, api=ApiSettings.model_validate(api))
        found = doctor.examine(Loaded(settings, {}), "http://127.0.0.1:9")
        return [finding.part for finding in found if finding.warns]

    assert warnings() == []
    assert warnings(host="10.0.0.5") == []  # never open
    assert warnings(open=True) == ["api.open"]

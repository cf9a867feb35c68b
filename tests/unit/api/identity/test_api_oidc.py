"""Tokens of an OpenID Connect issuer, and the login of the page."""

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from html import escape, unescape
from pathlib import Path
from traceback import walk_tb
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from context_parts import LoneBroker, app_over
from flask import Flask
from flask.testing import FlaskClient
from joserfc.jwk import RSAKey
from oidc_server import CLIENT, SECRET, OidcServer
from pydantic import SecretStr, ValidationError
from werkzeug.test import TestResponse

from callslip.agent.messages import Answer
from callslip.api.http import csrf
from callslip.api.identity import oidc
from callslip.api.identity.oidc import Provider
from callslip.api.identity.sessions import COOKIE, STATE_COOKIE
from callslip.api.identity.state import identity_of
from callslip.api.v1.answers import answering
from callslip.config.sections.identity import GroupRule, OidcSettings
from callslip.config.settings import ApiSettings, Settings
from callslip.errors import KeyRefused, TransientError
from callslip.messages.answers import Usage
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import KeyGrant, Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.tasks import ingest

RULES = "admins=admin; staff=read+feedback@papers; acme=read@*/acme"

PAGE = {"Accept": "text/html"}


@pytest.fixture
def issuer() -> Iterator[OidcServer]:
    with closing(OidcServer()) as server:
        yield server


def settings_of(server: OidcServer, **more: Any) -> OidcSettings:
    values = {
        "issuer": server.url,
        "client_id": CLIENT,
        "client_secret": SecretStr(SECRET),
        "groups": RULES,
        "seconds": 2.0,
    }
    return OidcSettings.model_validate(values | more)


@pytest.fixture
def app(issuer: OidcServer, tmp_path: Path) -> Iterator[Flask]:
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        settings = Settings(data_dir=tmp_path, oidc=settings_of(issuer))
        app = app_over(settings, ledger=ledger, broker=LoneBroker())
        yield app
        identity_of(app).close()


def test_the_groups_of_a_token_are_permissions_by_the_first_rule(issuer: OidcServer) -> None:
    provider = Provider(settings_of(issuer))
    staff = provider.caller(issuer.token())
    assert (staff.name, staff.kind, staff.user) == ("kim", "oidc", "kim")
    assert staff.permissions == {"read", "feedback"}
    assert (staff.collections, staff.tenants) == ({"papers"}, None)
    both = provider.caller(issuer.token(groups=["acme", "admins"]))
    assert both.permissions == {"admin"}
    assert not both.limited
    tenant = provider.caller(issuer.token(groups="acme"))
    assert (tenant.collections, tenant.tenants) == (None, {"acme"})
    nobody = provider.caller(issuer.token(groups=None))
    assert not nobody.permissions
    assert not nobody.sees("papers", "")
    assert issuer.calls == ["/.well-known/openid-configuration", "/keys"]


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"aud": None},
        {"iss": "https://elsewhere"},
        {"exp": int(time.time()) - 3600},
        {"exp": None},
        {"nbf": int(time.time()) + 3600},
        {"sub": None},
        {"sub": ["kim"]},
    ],
)
def test_a_token_with_wrong_claims_is_refused(issuer: OidcServer, claims: dict[str, Any]) -> None:
    with pytest.raises(KeyRefused):
        Provider(settings_of(issuer)).caller(issuer.token(**claims))


def by_public_key(claims: dict[str, Any], public: bytes) -> str:
    """A token with HMAC by the public key, which libraries refuse to make."""
    parts = [{"alg": "HS256", "kid": "one"}, claims]
    body = b".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=") for p in parts)
    signature = hmac.new(public, body, hashlib.sha256).digest()
    return f"{body.decode()}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def test_a_token_that_the_issuer_did_not_sign_is_refused(issuer: OidcServer) -> None:
    provider, good = Provider(settings_of(issuer)), issuer.token()
    header, body, signature = good.split(".")
    stranger = RSAKey.generate_key(2048, {"kid": "one"})
    public = issuer.key.as_pem(private=False)
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    admin = base64.urlsafe_b64encode(json.dumps(claims | {"groups": ["admins"]}).encode())
    for forged in (
        issuer.token(key=stranger),
        f"{header}.{admin.decode().rstrip('=')}.{signature}",
        f"{none}.{body}.",
        by_public_key(claims, public),
        "a.b.c",
        "..",
    ):
        with pytest.raises(KeyRefused):
            provider.caller(forged)
    assert provider.caller(good).user == "kim"


def test_new_keys_of_the_issuer_are_fetched_and_not_at_every_token(
    issuer: OidcServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider(settings_of(issuer))
    provider.caller(issuer.token())
    issuer.key = RSAKey.generate_key(2048, {"kid": "two"})
    for _ in range(3):
        with pytest.raises(KeyRefused):
            provider.caller(issuer.token())
    assert issuer.calls.count("/keys") == 1
    monkeypatch.setattr(oidc, "AGAIN_SECONDS", 0.0)
    assert provider.caller(issuer.token()).user == "kim"
    assert issuer.calls.count("/keys") == 2


def test_an_issuer_that_is_away_or_another_one_is_a_transient_error(issuer: OidcServer) -> None:
    token = issuer.token()
    issuer.discovery = {"issuer": "https://elsewhere"}
    with pytest.raises(TransientError, match="another issuer"):
        Provider(settings_of(issuer)).caller(token)
    issuer.discovery = {"jwks_uri": "http://192.0.2.1/keys"}
    with pytest.raises(TransientError, match="no safe jwks_uri"):
        Provider(settings_of(issuer)).caller(token)
    issuer.discovery = {"padding": "x" * oidc.LARGEST_REPLY}
    with pytest.raises(TransientError, match="TooLarge"):
        Provider(settings_of(issuer)).caller(token)
    gone = settings_of(issuer, issuer="http://127.0.0.1:9", seconds=0.3)
    with pytest.raises(TransientError, match="does not answer"):
        Provider(gone).caller(token)


def test_while_an_issuer_is_away_an_error_has_the_traceback_of_its_own_call() -> None:
    def fetch() -> None:
        raise TransientError("away")

    cached = oidc._Cached(fetch)
    for _ in range(3):
        with pytest.raises(TransientError) as raised:
            cached.get()
        frames = [frame.f_code for frame, _ in walk_tb(raised.value.__traceback__)]
        assert frames.count(oidc._Cached.get.__code__) == 1


def test_a_bearer_token_opens_the_server_within_its_limits(app: Flask, issuer: OidcServer) -> None:
    staff = {"Authorization": f"Bearer {issuer.token()}"}
    client = app.test_client()
    assert client.get("/v1/collections", headers=staff).json == {"collections": []}
    assert client.get("/v1/collections/papers/documents", headers=staff).status_code == 404
    assert client.post("/v1/batches", json={}, headers=staff).status_code == 403
    assert client.get("/v1/collections").status_code == 401
    late = {"Authorization": f"Bearer {issuer.token(exp=1)}"}
    assert client.get("/v1/collections", headers=late).status_code == 401
    identity_of(app).flush()
    rows = [row.entry for row in identity_of(app).ledger().audit_log.rows()]
    assert {(row.caller, row.kind) for row in rows} == {("kim", "oidc")}


def test_each_user_has_the_rate_and_the_quotas_of_the_settings(
    issuer: OidcServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"requests_per_minute": 5, "documents_per_day": 1, "tokens_per_day": 100}
    oidc_settings = settings_of(issuer, groups="staff=read+write", **limits)
    usage = Usage(calls=1, input_tokens=90, output_tokens=10)
    made = Answer.model_construct(trace_id="t" * 32, usage=usage)
    monkeypatch.setattr(answering.agent, "ask", lambda *_, **_again: made)
    monkeypatch.setattr(ingest, "send_all", lambda *_: True)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        schema = CollectionSchema("papers", VectorSpec(4))
        ledger.collections.create(schema, store="memory", embedder="tiny", analyzer="1")
        parts = {"blobs": Blobs(str(tmp_path / "blobs")), "broker": LoneBroker()}
        app = app_over(Settings(data_dir=tmp_path, oidc=oidc_settings), ledger=ledger, **parts)
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now)  # one minute, one day

        def post(user: str, path: str, **body: str) -> TestResponse:
            token = {"Authorization": f"Bearer {issuer.token(sub=user)}"}
            return app.test_client().post(path, json=body, headers=token)

        for code in (202, 429):
            documents = "/v1/collections/papers/documents"
            sent = post("kim", documents, name=f"{code}.txt", text=f"text {code}")
            assert sent.status_code == code, sent.text
        for code in (200, 429):
            answered = post("kim", "/v1/answer", collection="papers", question="what?")
            assert answered.status_code == code, answered.text
            identity_of(app).flush()
        assert post("kim", "/v1/search").status_code == 400
        refused = post("kim", "/v1/search")
        assert (refused.status_code, "the user 'kim'" in refused.text) == (429, True)
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert post("lee", "/v1/search").status_code == 400
        identity_of(app).close()


def submit(client: FlaskClient, path: str, **fields: str) -> TestResponse:
    """Send a form as the page does, with its token."""
    token = client.get_cookie(csrf.COOKIE)
    assert token is not None
    assert client.post(path, data=fields).status_code == 403
    return client.post(path, data={**fields, csrf.FIELD: token.value})


def test_the_page_logs_in_at_the_issuer(app: Flask, issuer: OidcServer) -> None:
    client = app.test_client()
    assert client.get("/", headers=PAGE).location == "/login"
    assert issuer.url in client.get("/login").text
    led = client.get("/?q=a%20b&alpha=0.2", headers=PAGE).location
    assert led == "/login?next=/?q%3Da%2520b%26alpha%3D0.2"
    begin = re.search('href="(/login/begin[^"]+)"', client.get(led).text)
    assert begin is not None
    begun = client.get(unescape(begin[1]))
    assert "HttpOnly" in begun.headers["Set-Cookie"]
    assert "SameSite=Lax" in begun.headers["Set-Cookie"]
    back = urlsplit(httpx.get(begun.location).headers["Location"])
    assert back.path == "/login/finish"
    done = client.get(f"{back.path}?{back.query}")
    assert done.location == "/?q=a%20b&alpha=0.2", done.text
    cookie = next(c for c in done.headers.getlist("Set-Cookie") if c.startswith(COOKIE))
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Log out" in client.get("/", headers=PAGE).text
    assert client.get("/v1/collections").status_code == 200
    assert client.post("/v1/batches", json={}).status_code == 403
    again = client.get(f"{back.path}?{back.query}")
    assert again.status_code == 401  # the code and the state are used
    submit(client, "/logout")
    assert client.get("/v1/collections").status_code == 401


def test_a_login_that_began_elsewhere_or_was_changed_is_refused(
    app: Flask, issuer: OidcServer
) -> None:
    client, other = app.test_client(), app.test_client()
    back = urlsplit(httpx.get(client.get("/login/begin").location).headers["Location"])
    assert other.get(f"{back.path}?{back.query}").status_code == 401
    other.get("/login/begin")
    assert other.get(f"{back.path}?{back.query}").status_code == 401
    assert client.get(f"{back.path}?state=x&code=y").status_code == 401
    state = client.get_cookie(STATE_COOKIE)
    assert state is not None
    client.set_cookie(STATE_COOKIE, f"{state.value[:-3]}AAA")
    assert client.get(f"{back.path}?{back.query}").status_code == 401
    client.set_cookie(COOKIE, state.value)
    assert client.get("/v1/collections").status_code == 401


def test_a_link_and_a_key_log_the_page_in(app: Flask) -> None:
    ledger = identity_of(app).ledger()
    text, key = ledger.api_keys.create("admin", KeyGrant(frozenset({"admin"})))
    code = ledger.secrets.login_code(key.key_id, 60)
    linked, typed = app.test_client(), app.test_client()
    assert linked.get("/login", query_string={"code": code}).location == "/"
    assert linked.get("/", headers=PAGE).status_code == 200
    assert typed.get("/login", query_string={"code": code}).status_code == 401
    refused = submit(typed, "/login", key=f"{text}x")
    assert refused.status_code == 401
    assert 'name="key"' in refused.text
    assert (
        "<b>Not logged in:</b> the server does not know this key, or it is revoked or expired."
        in refused.text
    )
    assert "Bearer" not in refused.text
    assert "<code>admin.key</code> of its data folder (<code>var/</code>" in refused.text
    for sent, target in (
        ("", "/"),
        ("/page/chunks?document=d&after=%ED%95%9C", "/page/chunks?document=d&after=%ED%95%9C"),
        ("https://elsewhere.example/", "/"),
        ("//elsewhere.example/", "/"),
        ("/\\elsewhere.example/", "/"),
        ("/\t/elsewhere.example/", "/"),
        ("/a\r\nSet-Cookie: a=b", "/"),
        ("elsewhere", "/"),
        ("/login?code=another", "/"),
        ("/login/begin", "/"),
        ("/logout", "/"),
        ("/./login?code=another", "/"),
        ("/page/../logout", "/"),
        ("/%2E/login", "/"),
        ("/page/chunks?document=a/../b", "/page/chunks?document=a/../b"),
        ("/?q=휴가", "/"),
        ("javascript:alert(1)", "/"),
    ):
        assert submit(typed, "/login", key=text, next=sent).location == target
        assert (
            f'name="next" value="{escape(target)}"'
            in typed.get("/login", query_string={"next": sent}).text
        )
    assert typed.get("/", headers=PAGE).status_code == 200
    ledger.api_keys.revoke("admin")
    identity_of(app).keys._cached.clear()
    assert typed.get("/v1/collections").status_code == 401


def test_the_key_of_the_settings_logs_the_page_in_until_it_is_another_one(tmp_path: Path) -> None:
    def app_with(key: str, ledger: Ledger) -> Flask:
        settings = Settings(data_dir=tmp_path, api=ApiSettings(key=SecretStr(key)))
        return app_over(settings, ledger=ledger, broker=LoneBroker())

    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        app = app_with("first-key", ledger)
        client = app.test_client()
        assert client.post("/login", data={"key": "first-key"}).location == "/"
        assert client.get("/v1/collections").status_code == 200
        session = client.get_cookie(COOKIE)
        assert session is not None
        other = app_with("second-key", ledger)
        client = other.test_client()
        client.set_cookie(COOKIE, session.value)
        assert client.get("/v1/collections").status_code == 401
        for each in (app, other):
            identity_of(each).close()


def test_rules_of_groups_are_read_and_mistakes_are_named() -> None:
    wanted = (
        GroupRule("admins", frozenset({"admin"}), None, None),
        GroupRule("/a b:c", frozenset({"read"}), frozenset({"x", "y"}), frozenset({"t", "u/v"})),
        GroupRule("*", frozenset({"read"}), None, frozenset({"t"})),
    )
    text = "admins=admin; /a b:c=read@x,y/t,u/v ;*=read@*/t;"
    assert OidcSettings(groups=text).rules == wanted
    for wrong in ("staff", "staff=all", "staff=", "staff=read@", "=read"):
        with pytest.raises(ValidationError):
            OidcSettings(groups=wrong)
    for issuer in ("http://example.org", "ftp://x", "https://", "https://u:p@example.org"):
        with pytest.raises(ValidationError):
            OidcSettings(issuer=issuer, client_id="x")
    with pytest.raises(ValidationError, match="client_id"):
        OidcSettings(issuer="https://example.org")


@pytest.mark.parametrize("name", ["a" * 201, "a\0b", "ann\n"])
def test_a_user_with_a_name_that_could_be_anothers_is_refused(
    issuer: OidcServer, name: str
) -> None:
    with pytest.raises(KeyRefused, match="cannot be"):
        Provider(settings_of(issuer)).caller_of({"sub": name})

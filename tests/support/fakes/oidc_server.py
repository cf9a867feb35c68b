"""An OpenID Connect issuer at the wire: discovery, keys, login with PKCE, tokens signed by RSA.

It checks what a real one checks: the redirect address, the code, its verifier, the client's secret.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "callslip", "a client's secret"


class OidcServer:
    """The issuer on a free port; `claims` are those of the user who logs in next."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
        self.claims: dict[str, Any] = {"sub": "kim", "groups": ["staff"]}
        self.codes: dict[str, dict[str, str]] = {}
        self.calls: list[str] = []
        self.discovery: dict[str, Any] = {}
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                issuer.answer(self, "GET")

            def do_POST(self) -> None:
                issuer.answer(self, "POST")

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def token(self, *, key: RSAKey | None = None, alg: str = "RS256", **claims: Any) -> str:
        """A signed token, valid unless the claims make it another one."""
        now = int(time.time())
        usual = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300}
        signing = key or self.key
        header = {"alg": alg, "kid": signing.kid}
        body = {k: v for k, v in (usual | self.claims | claims).items() if v is not None}
        return jwt.encode(header, body, signing, algorithms=[alg])

    def answer(self, http: BaseHTTPRequestHandler, method: str) -> None:
        address = urlsplit(http.path)
        self.calls.append(address.path)
        query = {k: v[0] for k, v in parse_qs(address.query).items()}
        form = http.rfile.read(int(http.headers.get("Content-Length") or 0)).decode()
        if address.path == "/.well-known/openid-configuration":
            document = {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
            }
            self._json(http, 200, document | self.discovery)
        elif address.path == "/keys":
            self._json(http, 200, {"keys": [self.key.as_dict(private=False)]})
        elif address.path == "/authorize":
            code = secrets.token_urlsafe(8)
            self.codes[code] = query
            back = urlencode({"code": code, "state": query["state"]})
            http.send_response(302)
            http.send_header("Location", f"{query['redirect_uri']}?{back}")
            http.end_headers()
        elif address.path == "/token" and method == "POST":
            self._exchange(http, {k: v[0] for k, v in parse_qs(form).items()})
        else:
            self._json(http, 404, {})

    def _exchange(self, http: BaseHTTPRequestHandler, form: dict[str, str]) -> None:
        begun = self.codes.pop(form["code"], {})
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        right = (
            begun.get("code_challenge") == challenge
            and begun.get("redirect_uri") == form["redirect_uri"]
            and begun.get("response_type") == "code"
            and (form["client_id"], form["client_secret"]) == (CLIENT, SECRET)
        )
        if not right:
            self._json(http, 400, {"error": "invalid_grant"})
            return
        self._json(
            http, 200, {"id_token": self.token(nonce=begun["nonce"]), "token_type": "Bearer"}
        )

    def _json(self, http: BaseHTTPRequestHandler, status: int, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        http.send_response(status)
        http.send_header("Content-Type", "application/json")
        http.send_header("Content-Length", str(len(text)))
        http.end_headers()
        http.wfile.write(text)

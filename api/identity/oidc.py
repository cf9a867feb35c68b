"""Tokens of an OpenID Connect issuer (OpenID Connect Core and Discovery 1.0, RFC 7519, RFC 7636).

Only the configured issuer is called, and the endpoints that its discovery document names, each call
bounded in time and size.
"""

import base64
import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from callslip.callers import Caller
from callslip.config.sections.identity import EVERYONE, OidcSettings
from callslip.config.settings import LOOPBACK
from callslip.errors import KeyRefused, TransientError
from callslip.http.transport import BoundedTransport, TooLarge, direct

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Signatures by a private key alone; with HMAC or `none`, anyone could make a token."""

LARGEST_REPLY = 1 << 18
"""Bytes of a reply of the issuer."""

CACHED_SECONDS = 3600.0
"""How long the discovery document and the keys are used."""

LONGEST_SECONDS = 86_400.0
"""How long earlier keys are used while the issuer does not answer."""

AGAIN_SECONDS = 30.0
"""The least time between two calls for the keys, when tokens name unknown ones or a call failed."""

LEEWAY_SECONDS = 60
"""The difference of clocks that is allowed."""

LONGEST_NAME = 200
"""Characters of a user's name; a longer one is refused, because a cut one could be another user."""


class Provider:
    """The issuer: verifies its tokens, and logs users in by the authorization code flow."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self._issuer, self._client_id = settings.issuer or "", settings.client_id or ""
        self._transport = BoundedTransport(LARGEST_REPLY, direct, at_once=8)
        self._discovered = _Cached(self._discover)
        self._keys = _Cached(self._fetch_keys)

    def caller(self, token: str) -> Caller:
        """The caller of a bearer token.

        Raises KeyRefused for a token that is invalid or expired, TransientError if the issuer does
        not answer.
        """
        return self.caller_of(self._claims(token, self._settings.audience or self._client_id))

    def caller_of(self, claims: Mapping[str, Any]) -> Caller:
        """The caller of verified claims: the first rule with a group of the user applies."""
        user = claims.get(self._settings.user_claim)
        if not isinstance(user, str) or not user:
            raise KeyRefused(f"the token has no claim {self._settings.user_claim!r}")
        if len(user) > LONGEST_NAME or not user.isprintable():
            raise KeyRefused("the token names a user that cannot be")
        groups = claims.get(self._settings.groups_claim)
        named = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
        return self.user(user, frozenset(g for g in named if isinstance(g, str)))

    def user(self, user: str, groups: frozenset[str]) -> Caller:
        """The caller with this name and these groups, by the rules of the settings."""
        for rule in self._settings.rules:
            if rule.group == EVERYONE or rule.group in groups:
                return Caller(
                    user,
                    "oidc",
                    rule.permissions,
                    rule.collections,
                    rule.tenants,
                    user,
                    groups,
                )
        return Caller(user, "oidc", frozenset(), frozenset(), frozenset(), user, groups)

    def begin(self, redirect_uri: str) -> tuple[str, dict[str, str]]:
        """The URL of the issuer's login, and the values that `finish` needs."""
        state = {
            "state": secrets.token_urlsafe(24),
            "nonce": secrets.token_urlsafe(24),
            "verifier": secrets.token_urlsafe(48),
        }
        challenge = hashlib.sha256(state["verifier"].encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": redirect_uri,
            "scope": self._settings.scope,
            "state": state["state"],
            "nonce": state["nonce"],
            "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        endpoint = self._endpoint("authorization_endpoint")
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", state

    def finish(self, code: str, state: Mapping[str, Any], redirect_uri: str) -> Caller:
        """Exchange the code of a login for its caller. Errors as for `caller`."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": self._client_id,
            "code_verifier": str(state["verifier"]),
        }
        secret = self._settings.client_secret
        if secret is not None:
            form["client_secret"] = secret.get_secret_value()
        reply = self._call("POST", self._endpoint("token_endpoint"), form)
        token = reply.get("id_token")
        if not isinstance(token, str):
            raise KeyRefused("the issuer sent no id_token")
        claims = self._claims(token, self._client_id)
        if not secrets.compare_digest(str(claims.get("nonce")), str(state["nonce"])):
            raise KeyRefused("the token belongs to another login")
        return self.caller_of(claims)

    def _claims(self, token: str, audience: str) -> dict[str, Any]:
        """The verified claims of a token for an audience."""
        try:
            try:
                decoded = jwt.decode(token, self._keys.get(), algorithms=ALGORITHMS)
            except (InvalidKeyIdError, JoseError, ValueError):
                # The issuer may have new keys.
                decoded = jwt.decode(token, self._keys.get(AGAIN_SECONDS), algorithms=ALGORITHMS)
            jwt.JWTClaimsRegistry(
                leeway=LEEWAY_SECONDS,
                iss={"essential": True, "value": self._issuer},
                aud={"essential": True, "value": audience},
                exp={"essential": True},
            ).validate(decoded.claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise KeyRefused(f"the token is refused: {type(error).__name__}") from None
        return decoded.claims

    def _discover(self) -> dict[str, Any]:
        url = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
        document = self._call("GET", url)
        if document.get("issuer") != self._issuer:
            raise TransientError(
                "the discovery document is of another issuer",
                hint="Set oidc.issuer to the issuer that the document names.",
            )
        return document

    def _fetch_keys(self) -> KeySet:
        document = self._call("GET", self._endpoint("jwks_uri"))
        try:
            keys = [key for key in document["keys"] if key.get("kty") in ("RSA", "EC", "OKP")]
            return KeySet.import_key_set({"keys": keys})
        except (JoseError, KeyError, TypeError, AttributeError, ValueError):
            raise TransientError("the issuer's keys cannot be read") from None

    def _endpoint(self, name: str) -> str:
        url = self._discovered.get().get(name)
        parts = urlsplit(url if isinstance(url, str) else "")
        if parts.scheme != "https" and parts.hostname not in LOOPBACK:
            raise TransientError(f"the discovery document has no safe {name}")
        return str(url)

    def _call(self, method: str, url: str, form: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The JSON object of a reply. Raises KeyRefused for 4xx of a POST, else TransientError."""
        client = httpx.Client(transport=self._transport, timeout=self._settings.seconds)
        try:
            response = client.request(method, url, data=form)
            if method == "POST" and 400 <= response.status_code < 500:
                raise KeyRefused(f"the issuer refuses the login with {response.status_code}")
            response.raise_for_status()
            reply = response.json()
        except (httpx.HTTPError, TooLarge, ValueError) as error:
            raise TransientError(f"the issuer does not answer: {type(error).__name__}") from None
        if not isinstance(reply, dict):
            raise TransientError("the issuer's reply is no JSON object")
        return reply


class _Cached:
    """A value that is fetched by one thread at a time; after a failure the next try waits."""

    def __init__(self, fetch: Callable[[], Any]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._value: Any = None
        self._fetched_at = self._failed_at = float("-inf")
        self._error: Exception | None = None

    def get(self, oldest: float = CACHED_SECONDS) -> Any:
        """The value, fetched again if it is older than `oldest` seconds."""
        with self._lock:
            now = time.monotonic()
            if now - self._fetched_at > LONGEST_SECONDS:
                self._value = None
            if now - self._fetched_at <= oldest:
                return self._value
            if now - self._failed_at <= AGAIN_SECONDS and self._error is not None:
                if self._value is not None:
                    return self._value
                raise self._error.with_traceback(None)  # which each raise makes longer
            try:
                self._value = self._fetch()
            except Exception as error:
                self._failed_at, self._error = time.monotonic(), error
                if self._value is not None:  # the earlier keys serve while the issuer is away
                    return self._value
                raise
            self._fetched_at = time.monotonic()
            return self._value


def groups_of_rules(settings: OidcSettings, groups: Sequence[str] | frozenset[str]) -> list[str]:
    """The groups that a rule names, which fit a session's cookie."""
    named = {rule.group for rule in settings.rules}
    return sorted(group for group in groups if group in named)

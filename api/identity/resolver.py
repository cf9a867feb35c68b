"""Finds the caller of a request: by a key, a token of OpenID Connect, or a session of the page."""

from typing import Any

from flask import Request

from callslip.api.identity.sessions import COOKIE
from callslip.api.identity.state import Identity
from callslip.callers import OPEN, Caller
from callslip.config.settings import LOOPBACK
from callslip.errors import KeyRefused
from callslip.keys import WRONG_KEY, basic_password, bearer, fits
from callslip.stores.ledger.access.keys import looks_like_key

SETTINGS = Caller("api.key", "settings", frozenset({"admin"}))
"""The caller with the key of the settings."""

NO_KEY = "the request carries no key"

LONGEST_TOKEN = 16_384


def resolve(identity: Identity, request: Request) -> Caller:
    """The caller of a request. The password of HTTP Basic is a key, too.

    Raises KeyRefused without a valid key, TooManyRequests while the address of a wrong key is
    locked.
    """
    if identity.settings.api.open or not _is_required(identity):
        return OPEN
    header = request.headers.get("Authorization")
    sent = bearer(header)
    if sent is None:
        sent = basic_password(header)
    if sent is None:
        if header is not None:
            raise KeyRefused(WRONG_KEY)
        return _of_session(identity, request.cookies.get(COOKIE))
    return of_key(identity, sent, request.remote_addr or "")


def of_key(identity: Identity, sent: bytes, address: str) -> Caller:
    """The caller of a key or a token. Errors as for `resolve`."""
    text = sent.decode("ascii", "replace")
    if identity.with_ledger and looks_like_key(text):
        key = identity.keys.of(text)
        if key is not None:
            return key.caller
    elif identity.provider is not None and text.count(".") == 2 and len(text) <= LONGEST_TOKEN:
        return identity.provider.caller(text)
    identity.lockout.check(address)
    key_set = identity.settings.api.key
    if key_set is not None and fits(sent, key_set.get_secret_value()):
        return SETTINGS
    if identity.lockout.wrong(address) and identity.with_ledger:
        identity.refused(address)
    raise KeyRefused(WRONG_KEY)


def session_of(caller: Caller, groups: list[str]) -> dict[str, Any]:
    """The values of a session of the caller."""
    if caller.key_id is not None:
        return {"key": caller.key_id}
    if caller.kind == "oidc":
        return {"user": caller.user, "groups": groups}
    return {"settings": True}


def _of_session(identity: Identity, cookie: str | None) -> Caller:
    if cookie is None or not identity.with_ledger:
        raise KeyRefused(NO_KEY)
    values = identity.sessions.read(cookie)
    if values is None:
        raise KeyRefused("the session is over")
    if "key" in values:
        key = identity.keys.by_id(values["key"])
        if key is not None:
            return key.caller
    elif "user" in values and identity.provider is not None:
        return identity.provider.user(values["user"], frozenset(values["groups"]))
    elif "settings" in values and identity.settings.api.key is not None:
        return SETTINGS
    raise KeyRefused("the session is over")


def _is_required(identity: Identity) -> bool:
    settings = identity.settings
    if settings.api.key is not None or settings.oidc.issuer is not None:
        return True
    # A server that others reach is never open, even if no key could be made at its start.
    return identity.with_ledger and (settings.api.host not in LOOPBACK or identity.keys.any())

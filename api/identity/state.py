"""What the API process needs to know its callers; each part is made at its first use."""

import atexit
import time
from functools import cached_property
from typing import TYPE_CHECKING, cast

from flask import Flask, current_app

from callslip.api.identity.counters import Counters
from callslip.api.identity.keys import CachedKeys
from callslip.api.identity.lockout import Lockout
from callslip.api.identity.recording import Use, UseRecorder
from callslip.api.identity.sessions import Sessions
from callslip.per_process import PerProcess
from callslip.stores.ledger import AuditEntry, KeyLimits, Ledger
from callslip.tasks.composition import Context

if TYPE_CHECKING:  # cryptography takes a tenth of a second to import
    from callslip.api.identity.oidc import Provider

EXTENSION = "callslip.identity"
"""The key in `app.extensions`."""


class Identity:
    """The parts of one process. `with_ledger` False: `api.key` is the only key."""

    def __init__(self, context: Context, *, with_ledger: bool) -> None:
        self.settings, self.with_ledger = context.settings, with_ledger
        self._context = context
        self.keys = CachedKeys(self.ledger)
        self._recorder = PerProcess(self._make_recorder)

    def ledger(self) -> Ledger:
        """The ledger of the process."""
        return self._context.ledger

    @cached_property
    def counters(self) -> Counters:
        """Counters in the broker."""
        return Counters(self.settings)

    @cached_property
    def lockout(self) -> Lockout:
        """The delays for wrong keys."""
        return Lockout(self.counters)

    @cached_property
    def provider(self) -> "Provider | None":
        """The OpenID Connect issuer; None if none is configured."""
        if not self.settings.oidc.issuer or not self.with_ledger:
            return None
        from callslip.api.identity.oidc import Provider

        return Provider(self.settings.oidc)

    @cached_property
    def user_limits(self) -> KeyLimits:
        """The limits of each user of OpenID Connect."""
        of = self.settings.oidc
        return KeyLimits(
            of.requests_per_minute, of.documents_per_day, of.bytes_per_day, of.tokens_per_day
        )

    @cached_property
    def sessions(self) -> Sessions:
        """The signed sessions of the page, which another `api.key` ends."""
        key = self.settings.api.key
        secret = self.ledger().secrets.session() + (key.get_secret_value() if key else "")
        return Sessions(secret, self.settings.oidc.session_hours)

    def record(self, use: Use) -> None:
        """Add a use to the audit log."""
        self._recorder.get().put(use)

    def refused(self, address: str) -> None:
        """Add a wrong key to the audit log, by the address that sent it."""
        entry = AuditEntry(time.time(), "-", "none", "wrong key", 401, {"address": address})
        self.record(Use(entry))

    def flush(self) -> None:
        """Write what waits for the audit log."""
        self._recorder.get().flush()

    def close(self) -> None:
        """Write what waits, and end the thread that writes."""
        self._recorder.get().close()

    def _make_recorder(self) -> UseRecorder:
        made = UseRecorder(self.ledger)
        atexit.register(made.close)
        return made


def identity() -> Identity:
    """The parts of the app that answers the request."""
    return identity_of(current_app)


def identity_of(app: Flask) -> Identity:
    """The parts of an app."""
    return cast(Identity, app.extensions[EXTENSION])

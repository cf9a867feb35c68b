"""Rate limits and quotas of keys and of users of OpenID Connect.

Requests are counted by the minute in the broker. Documents, bytes and tokens of language models are
counted by the day (UTC) in the ledger, so that quotas survive a restart.
"""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from callslip.api.identity.counters import Counters
from callslip.api.identity.current import known_caller
from callslip.api.identity.state import Identity, identity
from callslip.callers import Caller
from callslip.errors import InvalidRequest, PermanentError, TooManyRequests
from callslip.stores.ledger import KeyLimits, Used
from callslip.stores.ledger.answers.model_usage import DAY_SECONDS, day_of

MINUTE = 60


@dataclass(frozen=True)
class Account:
    """The keys of one name, or a user of OpenID Connect: their requests count together.

    `name` is that of the counters, `who` is for messages.
    """

    name: str
    who: str
    limits: KeyLimits


def account_name(known: Identity, caller: Caller) -> str | None:
    """The name that a caller's usage counts for; None if nothing is counted.

    That of a user has the issuer and the user as a hash, which no name of a key equals by accident.
    """
    if caller.kind == "oidc":
        text = f"{known.settings.oidc.issuer}\n{caller.user}"
        return f"oidc:{hashlib.sha256(text.encode()).hexdigest()}"
    return caller.name if caller.key_id is not None else None


def account_of(known: Identity, caller: Caller) -> Account | None:
    """The account of a caller; None if it has no limits."""
    name = account_name(known, caller)
    if name is None:
        return None
    if caller.kind == "oidc":
        return Account(name, f"the user {caller.name!r}", known.user_limits)
    key = known.keys.by_id(caller.key_id or "")
    return Account(name, f"the key {name!r}", key.grant.limits) if key is not None else None


def check_rate(counters: Counters, account: Account, now: float) -> None:
    """Count a request; raise TooManyRequests if the minute's are used up."""
    most = account.limits.requests_per_minute
    if most is None:
        return
    minute = int(now // MINUTE)
    if counters.add(f"rate:{minute}:{account.name}", 2 * MINUTE) > most:
        raise TooManyRequests(
            f"{account.who} may send {most:,} requests in a minute",
            retry_after=max(1.0, (minute + 1) * MINUTE - now),
        )


def spend_documents(documents: int, size: int) -> None:
    """Count documents to be stored, and their bytes, before the request stores them.

    Raises TooManyRequests if they exceed a quota of the caller, InvalidRequest if they exceed it
    even on a new day.
    """
    with documents_spent(documents, size):
        pass


@contextmanager
def documents_spent(documents: int, size: int) -> Iterator[None]:
    """Count documents that the block stores; do not count them if it raises a PermanentError.

    Raises the errors of `spend_documents`.
    """
    account, now = _account(), time.time()
    if account is None:
        yield
        return
    more = Used(documents=documents, bytes=size)
    most, bytes_ = account.limits.documents_per_day, account.limits.bytes_per_day
    if (most is not None and documents > most) or (bytes_ is not None and size > bytes_):
        raise InvalidRequest(
            f"this is more than {account.who} may store on a day", hint="Send less at once."
        )
    usage = identity().ledger().key_usage
    if not usage.reserve(account.name, day_of(now), more, documents=most, size=bytes_):
        raise _spent(account, "documents or bytes", now)
    try:
        yield
    except PermanentError:
        usage.give_back(account.name, day_of(now), more)
        raise


def check_tokens() -> None:
    """Raise TooManyRequests if the caller has used its tokens of the day."""
    account, now = _account(), time.time()
    if account is None or account.limits.tokens_per_day is None:
        return
    used = identity().ledger().key_usage.of(account.name, day_of(now))
    if used.tokens >= account.limits.tokens_per_day:
        raise _spent(account, "tokens of language models", now)


def _account() -> Account | None:
    return account_of(identity(), known_caller())


def _spent(account: Account, what: str, now: float) -> TooManyRequests:
    return TooManyRequests(
        f"the {what} that {account.who} may use today are used up",
        hint="They are renewed at midnight UTC; `callslip keys list` shows a key's limits, and"
        " `oidc.…_per_day` are those of users.",
        retry_after=DAY_SECONDS - now % DAY_SECONDS,
    )

"""The caller of the current request, and what the audit log records of it."""

from typing import cast

from flask import g

from callslip.api.http.context import current
from callslip.api.identity import scopes
from callslip.callers import OPEN, Caller
from callslip.errors import PermissionMissing
from callslip.readers import Reader, owner_of

LONGEST_ID = 128
"""Characters of an id in the audit log; a request can name any text as an id."""


def caller() -> Caller:
    """The caller of the request; the endpoint answers for checking its limits."""
    g.scope_checked = True
    return known_caller()


def known_caller() -> Caller:
    """The caller of the request, without a promise to check its limits."""
    return cast(Caller, g.get("caller", OPEN))


def reader_of(caller: Caller) -> Reader | None:
    """The reader that a caller is; None for one who may read everything.

    One user is the same reader with every key. Callers without a user read as their key.
    """
    if caller.may("admin"):
        return None
    names = {f"group:{group}" for group in caller.groups}
    if caller.user is not None:
        names.add(f"user:{caller.user}")
    who = f"user:{caller.user}" if caller.user is not None else f"{caller.kind}:{caller.name}"
    return Reader(owner_of(who), frozenset(names))


def voter(user: str) -> str:
    """Whose feedback or question a request is: the caller's, or that of the `user` which it names.

    At most LONGEST_ID characters, a hash of a longer name. An open server has no callers, so every
    request may name a user. Raises PermissionMissing for another user without `delegate`.
    """
    caller = known_caller()
    if caller.kind == "open" or (user and caller.may("delegate")):
        return user
    if user not in ("", caller.user):
        raise PermissionMissing(
            f"{caller.name!r} may not name the user {user[:LONGEST_ID]!r}",
            hint="Send no `user`, or a key with the permission `delegate`.",
        )
    who = caller.user or f"{caller.kind}:{caller.name}"
    return who if len(who) <= LONGEST_ID else owner_of(f"user:{who}")


def is_scope_checked() -> bool:
    """Whether the endpoint has taken the caller to check its limits."""
    return bool(g.get("scope_checked", False))


def check_collection(collection: str) -> None:
    """Raise the error of a missing collection unless the caller may see it or one tenant of it."""
    scopes.check_collection(caller(), current().ledger, collection)


def check_scope(collection: str, tenant: str | None) -> None:
    """Raise the error of a missing collection or tenant unless the caller may see it."""
    note(collection=collection, tenant=tenant or "")
    check_collection(collection)
    caller().check(collection, tenant or "")


def check_whole(collection: str) -> None:
    """As `check_scope`, for what concerns every tenant of a collection."""
    note(collection=collection)
    caller().check_whole(collection)


def note(**ids: str) -> None:
    """Add ids to the row of the audit log."""
    known = g.setdefault("audit_ids", {})
    known |= {name: value[:LONGEST_ID] for name, value in ids.items() if value}


def spent_tokens(tokens: int) -> None:
    """Count tokens of language models for the caller's key."""
    g.tokens = g.get("tokens", 0) + tokens


def noted() -> dict[str, str]:
    """The ids for the row of the audit log."""
    return cast(dict[str, str], g.get("audit_ids", {}))

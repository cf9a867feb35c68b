"""The caller of a request: its permissions, and the collections and tenants that it may see."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

from callslip.errors import CollectionNotFound, PermissionMissing, TenantNotFound

Permission = Literal["read", "write", "feedback", "delegate", "admin"]
"""What a caller may do. `admin` includes all others, which do not include each other. `delegate`
permits to name the user whom feedback or a question is of."""

PERMISSIONS: tuple[Permission, ...] = get_args(Permission)

Kind = Literal["open", "settings", "key", "oidc"]
"""How a caller is known: a server without keys, `api.key`, a key of the ledger, OpenID Connect."""


@dataclass(frozen=True)
class Caller:
    """The caller of a request.

    `collections` and `tenants` are the only ones that it may see; None means all. A collection
    without tenants has the tenant "". `user` and `groups` are those of OpenID Connect or of a key.
    `key_id` names the key of the ledger.
    """

    name: str
    kind: Kind
    permissions: frozenset[Permission]
    collections: frozenset[str] | None = None
    tenants: frozenset[str] | None = None
    user: str | None = None
    groups: frozenset[str] = frozenset()
    key_id: str | None = None

    @property
    def limited(self) -> bool:
        """Whether some collections or tenants are hidden from it."""
        return self.collections is not None or self.tenants is not None

    def may(self, permission: Permission) -> bool:
        """Whether it has the permission."""
        return permission in self.permissions or "admin" in self.permissions

    def sees_collection(self, collection: str, *, tenants: bool) -> bool:
        """Whether it may see the collection or one tenant of it; `tenants`: whether it has any."""
        return self._may_name(collection) if tenants else self.sees(collection, "")

    def sees(self, collection: str, tenant: str) -> bool:
        """Whether it may see this tenant of the collection; "" is the tenant of one without any."""
        return self._may_name(collection) and (self.tenants is None or tenant in self.tenants)

    def sees_all(self, scopes: Collection[tuple[str, str]]) -> bool:
        """Whether it may see each of these pairs of a collection and a tenant."""
        return all(self.sees(*scope) for scope in scopes)

    def check(self, collection: str, tenant: str) -> None:
        """Raise the error of a missing collection or tenant unless the caller may see it."""
        if not self._may_name(collection):
            raise CollectionNotFound(f"collection {collection!r} does not exist")
        if not self.sees(collection, tenant):
            raise TenantNotFound(f"Collection {collection} has no tenant {tenant!r}.")

    def check_whole(self, collection: str) -> None:
        """As `check`, for what concerns every tenant: raise PermissionMissing without all of them.

        Raises CollectionNotFound if the caller may not see the collection.
        """
        if not self._may_name(collection):
            raise CollectionNotFound(f"collection {collection!r} does not exist")
        if self.tenants is not None:
            raise PermissionMissing("the caller is limited to tenants, and this concerns all")

    def _may_name(self, collection: str) -> bool:
        return self.collections is None or collection in self.collections


OPEN = Caller("open", "open", frozenset({"admin"}))
"""The caller of a server that has no keys."""

"""Keys of the ledger with a short cache, so that few requests read the ledger for their key.

A revoked key is refused at the latest CACHED_SECONDS later.
"""

import hashlib
import threading
import time
from collections.abc import Callable

from cachetools import TTLCache

from callslip.errors import StoreDown
from callslip.stores.ledger import ApiKey, Ledger

CACHED_SECONDS = 5.0

MOST = 4096
"""The most keys in the cache. Wrong keys are not cached, so nobody can fill it with them."""


class CachedKeys:
    """Finds keys by their text or their id."""

    def __init__(self, ledger: Callable[[], Ledger]) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._cached: TTLCache[str, ApiKey] = TTLCache(MOST, CACHED_SECONDS)
        self._required, self._is_known, self._looked_at = False, False, float("-inf")

    def of(self, text: str) -> ApiKey | None:
        """The valid key of a text; None if there is none."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        return self._valid(digest, lambda: self._ledger().api_keys.of(text))

    def by_id(self, key_id: str) -> ApiKey | None:
        """The valid key of an id; None if there is none."""
        return self._valid(key_id, lambda: self._ledger().api_keys.get(key_id))

    def any(self) -> bool:
        """Whether a key was ever made, so that the server requires one.

        The answer yes is final; the answer no is at most CACHED_SECONDS old, or older while the
        ledger does not answer. Raises StoreDown if it has never answered.
        """
        if not self._required and time.monotonic() - self._looked_at >= CACHED_SECONDS:
            try:
                self._required = self._ledger().api_keys.any()
            except StoreDown:
                if not self._is_known:
                    raise
            self._is_known, self._looked_at = True, time.monotonic()
        return self._required

    def _valid(self, name: str, read: Callable[[], ApiKey | None]) -> ApiKey | None:
        with self._lock:
            key = self._cached.get(name)
        if key is None and (key := read()) is not None:
            with self._lock:
                self._cached[name] = self._cached[key.key_id] = key
        return key if key is not None and key.is_valid(time.time()) else None

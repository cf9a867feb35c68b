"""Delays for addresses that send wrong keys.

The 256 random bits of a key of the ledger cannot be guessed, so a right one is accepted from every
address. While an address is locked, `api.key`, which may be short, is not compared at all.
"""

from callslip.api.identity.counters import Counters
from callslip.errors import TooManyRequests
from callslip.http.addresses import network_of

FREE = 5
"""Wrong keys of an address without a delay."""

WINDOW_SECONDS = 900
"""Wrong keys are forgotten this long after the last one."""

LONGEST_SECONDS = 300


class Lockout:
    """Counts wrong keys by address, and locks the address: 1 s, 2 s, 4 s … 300 s."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def check(self, address: str) -> None:
        """Raise TooManyRequests while the address is locked."""
        left = self._counters.left(f"locked:{network_of(address)}")
        if left > 0:
            raise TooManyRequests("wrong keys came from this address", retry_after=max(1.0, left))

    def wrong(self, address: str) -> bool:
        """Count a wrong key; whether the address was not locked before."""
        name = network_of(address)
        was_free = self._counters.left(f"locked:{name}") <= 0
        count = self._counters.add(f"wrong:{name}", WINDOW_SECONDS)
        if count > FREE:
            seconds = min(LONGEST_SECONDS, 2 ** min(20, count - FREE - 1))
            self._counters.set(f"locked:{name}", seconds)
        return was_free

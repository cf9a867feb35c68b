"""The slowest transfer that a connection may make."""


class Pace:
    """The deadline of a transfer: every `seconds` at least `seconds` times `rate` bytes move.

    No speed at the start pays for slowness afterwards, as it would for an average.
    """

    def __init__(self, seconds: float, rate: float, now: float) -> None:
        """`rate` is in bytes per second; `now` is on the clock of `deadline`."""
        self._seconds, self._quota = seconds, seconds * rate
        self._missing = self._quota
        self.deadline = now + seconds

    def moved(self, count: int, now: float) -> None:
        """Count bytes that moved; when they are enough, the next period begins."""
        self._missing -= count
        if self._missing <= 0:
            self._missing, self.deadline = self._quota, now + self._seconds

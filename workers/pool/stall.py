"""Decides when a worker that is alive takes no work: its main loop runs, but its pool does not."""

from collections.abc import Collection, Hashable

IDLE_SECONDS = 8.0
"""Seconds for which messages may wait while the worker does nothing."""


class Stall:
    """What a worker did at the last looks. All times are seconds of one monotonic clock.

    The canaries that the scheduler sends make a stall show before a user's message waits.
    """

    def __init__(self, slots: int, longest: float | None) -> None:
        """A pool of `slots`; no task takes longer than `longest` seconds, None if tasks may."""
        self._slots, self._longest = slots, longest
        self._begun: dict[Hashable, float] = {}
        self._idle_since: float | None = None

    def look(self, now: float, waiting: int, tasks: Collection[Hashable]) -> str:
        """Why the worker is stalled, given the messages that wait and the tasks that run.

        Empty if it is not stalled.
        """
        self._begun = {task: self._begun.get(task, now) for task in tasks}
        ages = [now - begun for begun in self._begun.values()]
        if self._longest is not None and len(ages) >= self._slots and min(ages) > self._longest:
            return f"all {self._slots} tasks run for more than {self._longest:.0f} s"
        if not waiting or tasks:
            self._idle_since = None
            return ""
        if self._idle_since is None:
            self._idle_since = now
        idle = now - self._idle_since
        return (
            f"{waiting} messages wait, none taken for {idle:.0f} s" if idle > IDLE_SECONDS else ""
        )

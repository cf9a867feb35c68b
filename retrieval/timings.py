"""The durations of the stages of a search."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Timings(dict[str, float]):
    """Milliseconds by stage, in the order in which they began to count."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure the time of the `with` block; repeated runs of a stage are added."""
        start = time.perf_counter()
        try:
            yield
        finally:
            took = (time.perf_counter() - start) * 1000
            self[name] = round(self.get(name, 0.0) + took, 3)

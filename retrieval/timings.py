"""How long the stages of a search took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Timings(dict[str, float]):
    """Milliseconds by stage, in the order in which they began to count."""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is inside; a stage that runs again adds up."""
        start = time.perf_counter()
        try:
            yield
        finally:
            took = (time.perf_counter() - start) * 1000
            self[name] = round(self.get(name, 0.0) + took, 3)

"""The contract of runtimes."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


class Runtime(Protocol):
    """One graph, loaded. Threads may share it; a fork may not."""

    def run(self, output: str, inputs: Mapping[str, npt.NDArray[Any]]) -> Floats:
        """Return an output of the graph; `inputs` has a value for each of its inputs."""
        ...

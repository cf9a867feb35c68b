"""Runs a graph in OpenVINO, in bf16."""

import importlib
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from callslip.models.e5.runtimes.contract import Floats

_TELEMETRY = "openvino_telemetry"


class OpenVino:
    """One graph in OpenVINO. Weights and products are bf16, sums are fp32.

    Several threads compute at once, as many as the cores have room for.
    """

    def __init__(self, graph: Path, threads: int) -> None:
        """`threads` is the number of threads of one inference."""
        vendor = _without_telemetry()
        streams = max(1, (os.cpu_count() or 1) // threads)
        core = vendor.Core()
        self._model = core.compile_model(
            core.read_model(graph),
            "CPU",
            {
                "INFERENCE_PRECISION_HINT": vendor.Type.bf16,
                "NUM_STREAMS": streams,
                "INFERENCE_NUM_THREADS": streams * threads,
                # The threads of all processes would be bound to the same first cores.
                "ENABLE_CPU_PINNING": False,
            },
        )
        self._threads = threading.local()

    def run(self, output: str, inputs: Mapping[str, npt.NDArray[Any]]) -> Floats:
        """Return an output of the graph, as `Runtime.run` does."""
        if not hasattr(self._threads, "request"):
            self._threads.request = self._model.create_infer_request()
        values = self._threads.request.infer(dict(inputs), share_inputs=True)
        return np.array(values[self._model.output(output)], np.float32)


def _without_telemetry() -> ModuleType:
    """Import openvino without the package that would send reports of its converter's use.

    OpenVINO has stand-ins for an absent package, which it keeps once it is imported.
    """
    sys.modules[_TELEMETRY] = None  # type: ignore[assignment]  # so that it cannot be imported
    return importlib.import_module("openvino")

"""Runs a graph in OpenVINO, in bf16."""

import importlib
import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from callslip.models.e5.prepare import build_once
from callslip.models.e5.runtimes.contract import Floats

_TELEMETRY = "openvino_telemetry"

_CONVERT = f"""
import sys
sys.modules["{_TELEMETRY}"] = None
import openvino
graph = openvino.Core().read_model(sys.argv[1])
openvino.save_model(graph, sys.argv[2], compress_to_fp16=False)
"""


SHAPES = {"CPU_RUNTIME_CACHE_CAPACITY": 64}
"""OpenVINO keeps what it has made for each shape of a batch, by default for 5000 of its nodes.

A shape takes .85 MB, and there are many, as the rows of a batch have one length: after 120 shapes a
process had 100 MB more. With this size 16 lengths that alternate are as fast as before.
"""

PRIMITIVES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")
"""The environment variable with the size of a cache of the library below, by default 1024."""

BACKGROUND = 10
"""From this niceness on, OpenVINO's threads compute only while a core has nothing else to do. A
search that wakes up then gets a core at once: niceness alone made it wait. The other threads of the
process, among them those that renew leases, keep its niceness.
"""


class OpenVino:
    """One graph in OpenVINO. Weights and products are bf16, sums are fp32.

    Several threads compute at once, as many as the cores have room for.

    The first inference makes OpenVINO's own copy of the weights, in bf16: 43 MB. The file of the
    weights is mapped into memory, so that all processes share its pages, and its pages are given
    back after that inference. Read from the ONNX file, the weights took 85 MB more.
    """

    def __init__(self, graph: Path, threads: int) -> None:
        """`threads` is the number of threads of one inference."""
        vendor = _without_telemetry()
        streams = max(1, (os.cpu_count() or 1) // threads)
        os.environ.setdefault(*PRIMITIVES)
        core = vendor.Core()
        topology, weights = _converted(graph)
        with weights.open("rb") as file:
            self._weights = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        tensor = vendor.Tensor(np.frombuffer(self._weights, np.uint8), shared_memory=True)
        compile_model = partial(
            core.compile_model,
            core.read_model(topology.read_bytes(), tensor),
            "CPU",
            {
                "INFERENCE_PRECISION_HINT": vendor.Type.bf16,
                "NUM_STREAMS": streams,
                "INFERENCE_NUM_THREADS": streams * threads,
                # The threads of all processes would be bound to the same first cores.
                "ENABLE_CPU_PINNING": False,
                **SHAPES,
            },
        )
        is_background = os.getpriority(os.PRIO_PROCESS, 0) >= BACKGROUND
        self._model = _when_idle(compile_model) if is_background else compile_model()
        self._threads = threading.local()
        self._copied = False

    def run(self, output: str, inputs: Mapping[str, npt.NDArray[Any]]) -> Floats:
        """Return an output of the graph, as `Runtime.run` does."""
        if not hasattr(self._threads, "request"):
            self._threads.request = self._model.create_infer_request()
        values = self._threads.request.infer(dict(inputs), share_inputs=True)
        if not self._copied:
            self._copied = True
            self._weights.madvise(mmap.MADV_DONTNEED)  # a page that is needed again is read again
        return np.array(values[self._model.output(output)], np.float32)


def _converted(graph: Path) -> tuple[Path, Path]:
    """Return the files of the graph in OpenVINO's format, topology and weights.

    They lie beside the graph, and are made once for each version of OpenVINO, in a separate
    process, whose end frees its memory.
    """
    stem = f"{graph.stem}-openvino-{version('openvino')}"
    topology, weights = graph.with_name(f"{stem}.xml"), graph.with_name(f"{stem}.bin")

    def build() -> bytes:
        with TemporaryDirectory(dir=graph.parent) as folder:
            made = Path(folder, topology.name)
            subprocess.run((sys.executable, "-c", _CONVERT, str(graph), str(made)), check=True)
            made.with_name(weights.name).replace(weights)
            return made.read_bytes()

    return build_once(topology, build), weights


def _when_idle(start: Callable[[], Any]) -> Any:
    """Call a function whose threads are to have Linux's policy for what may wait (SCHED_IDLE).

    Threads inherit it from the thread that starts them, which may not give it up again.
    """

    def call() -> Any:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        return start()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call).result()


def _without_telemetry() -> ModuleType:
    """Import openvino without the package that would send reports of its converter's use.

    OpenVINO has stand-ins for an absent package, which it keeps once it is imported.
    """
    sys.modules[_TELEMETRY] = None  # type: ignore[assignment]  # so that it cannot be imported
    return importlib.import_module("openvino")

"""Runs a graph in OpenVINO, in bf16."""

import importlib
import mmap
import os
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from callslip.models.e5.runtimes.background import BACKGROUND
from callslip.models.e5.runtimes.contract import Floats
from callslip.models.e5.runtimes.converted import Conversion, load

_TELEMETRY = "openvino_telemetry"

_CONVERT = f"""
import sys
sys.modules["{_TELEMETRY}"] = None
import openvino
from openvino import opset13 as operators
graph = openvino.Core().read_model(sys.argv[1])
for node in graph.get_ordered_ops():
    if node.get_type_name() == "MatMul":
        weights, turned = node.input_value(1).get_node(), node.get_attributes()
        if weights.get_type_name() == "Constant" and not turned["transpose_b"]:
            transposed = operators.constant(weights.data.T.copy(order="C"))
            product = operators.matmul(
                node.input_value(0), transposed, turned["transpose_a"], True
            )
            node.output(0).replace(product.output(0))
openvino.save_model(graph, sys.argv[2], compress_to_fp16=False)
openvino.Core().read_model(sys.argv[2])
"""
"""Writes a graph with weights of the shape (out, in), which OpenVINO multiplies as they are.

Of weights of the shape (in, out), as ONNX has them, each process made a copy of 42 MB when it
loaded the model. The products are the same, bit by bit.
"""

_CONVERSION = 2
"""Incremented when `_CONVERT` writes another graph, so that it is written again."""


SHAPES = {"CPU_RUNTIME_CACHE_CAPACITY": 128}
"""OpenVINO keeps what it has made for each shape of a batch, by default for 5000 of its nodes.

A shape takes .85 MB. With 24 padded lengths and batches of one to 64 rows a process has 50 MB more
after many texts; with half the size it has 32 MB more and embeds up to a tenth fewer passages.
"""

PRIMITIVES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")
"""The environment variable with the size of a cache of the library below, by default 1024."""


class OpenVino:
    """One graph in OpenVINO. Weights and products are bf16, sums are fp32.

    Several threads may call it. A call waits while `at_once` others compute.

    The first inference makes OpenVINO's own copy of the weights, in bf16: 43 MB. The file of the
    weights is mapped into memory, so that all processes share its pages, and its pages are given
    back after that inference. Read from the ONNX file, the weights took 85 MB more.

    In a process with the variable BACKGROUND, the threads compute only while a core has nothing
    else to do. A search that wakes up then gets a core at once: niceness alone made it wait. The
    other threads of the process, among them those that renew leases, keep its niceness.
    """

    def __init__(self, graph: Path, threads: int, at_once: int) -> None:
        """At most `at_once` inferences of `threads` threads each run at once.

        Each of these takes 25 MB, and some 50 MB more after texts of many lengths (`SHAPES`).
        """
        vendor = _without_telemetry()
        os.environ.setdefault(*PRIMITIVES)
        core = vendor.Core()
        model, self._weights = _read(vendor, core, graph)
        compile_model = partial(
            core.compile_model,
            model,
            "CPU",
            {
                "INFERENCE_PRECISION_HINT": vendor.Type.bf16,
                "NUM_STREAMS": at_once,
                "INFERENCE_NUM_THREADS": at_once * threads,
                # The threads of all processes would be bound to the same first cores.
                "ENABLE_CPU_PINNING": False,
                **SHAPES,
            },
        )
        self._model = _in_thread(compile_model, idle=BACKGROUND in os.environ)
        self._threads = threading.local()
        self._copied = False

    def run(self, output: str, inputs: Mapping[str, npt.NDArray[Any]]) -> Floats:
        """Return an output of the graph, as `Runtime.run` does."""
        if not hasattr(self._threads, "request"):
            self._threads.request = self._model.create_infer_request()
        values = self._threads.request.infer(dict(inputs), share_inputs=True)
        if not self._copied:
            self._copied = True
            if self._weights is not None:  # a page that is needed again is read again
                self._weights.madvise(mmap.MADV_DONTNEED)
        return np.array(values[self._model.output(output)], np.float32)


def _read(vendor: ModuleType, core: Any, graph: Path) -> tuple[Any, mmap.mmap | None]:
    """Read the converted graph; return the model and its weights, mapped into memory.

    Without a converted graph, read the ONNX file.
    """

    def read(topology: Path, weights: Path) -> tuple[Any, mmap.mmap]:
        with weights.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        tensor = vendor.Tensor(np.frombuffer(mapped, np.uint8), shared_memory=True)
        return core.read_model(topology.read_bytes(), tensor), mapped

    edition = f"{version('openvino')}-{_CONVERSION}"
    conversion = Conversion("openvino", edition, ".xml", _CONVERT)
    return load(graph, conversion, read) or (core.read_model(graph), None)


def _in_thread(start: Callable[[], Any], *, idle: bool) -> Any:
    """Call the function that loads OpenVINO's plugin in a thread that ends with the call.

    The plugin gives the thread another stack for signal handlers, and unmaps that stack with the
    last model. If the thread still ran then, the next signal would end the process by SIGSEGV.

    If `idle`, the threads that the function starts have Linux's policy for what may wait
    (SCHED_IDLE), which they inherit and the thread may not give up again. Where the system refuses
    the policy, they have the niceness of the process alone.
    """

    def call() -> Any:
        if idle:
            with suppress(OSError):
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

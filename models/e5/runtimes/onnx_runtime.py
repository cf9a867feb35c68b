"""Runs a graph in onnxruntime: in fp32 on any processor, or on an NVIDIA GPU."""

import hashlib
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from callslip.errors import SettingsError
from callslip.models.e5.runtimes.background import BACKGROUND
from callslip.models.e5.runtimes.contract import Floats
from callslip.models.e5.runtimes.converted import Conversion, load
from callslip.models.e5.runtimes.processor import processor_flags

CUDA = "CUDAExecutionProvider"

CUDA_OPTIONS = {"use_tf32": "0"}
"""By default onnxruntime multiplies fp32 matrices in TF32, which has the digits of fp16.

A vector then depended on its batch in the fourth digit; TF32 is a third faster.
"""

_HINT = (
    "Replace the package onnxruntime by onnxruntime-gpu and check its CUDA libraries,"
    " or set embedder.device to cpu."
)


_PREPACK = """
import sys
from pathlib import Path
import onnxruntime
graph, made = map(Path, sys.argv[1:])
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
options.optimized_model_filepath = str(made)
for name, value in {
    "optimized_model_external_initializers_file_name": made.with_suffix(".bin").name,
    "optimized_model_external_initializers_min_size_in_bytes": "1024",
    "save_external_prepacked_constant_initializers": "1",
}.items():
    options.add_session_config_entry("session." + name, value)
onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
onnxruntime.InferenceSession(str(made), providers=["CPUExecutionProvider"])
"""
"""Writes a graph with its weights in the order in which this processor multiplies them.

onnxruntime maps such weights into memory, so that all processes share their pages. Of the weights
in a plain graph each process makes a copy in that order when it loads the graph, 85 MB. The
products are the same, bit by bit.
"""

_CONVERSION = 1
"""Incremented when `_PREPACK` writes another graph, so that it is written again."""

_VECTOR_SETS = ("amx", "avx", "f16c", "fma", "sse")
"""Beginnings of Linux's names of the instructions that compute with vectors."""


class OnnxRuntime:
    """One graph in onnxruntime."""

    def __init__(self, graph: Path, threads: int, *, cuda: bool = False) -> None:
        """`threads` is the number of threads of one inference.

        Raises SettingsError if `cuda` is wanted and onnxruntime cannot use a GPU.
        """
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads that spin while they wait would take the cores from other processes.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._run_options = onnxruntime.RunOptions()
        if not cuda and BACKGROUND not in os.environ:
            # The memory of the longest text so far would stay; ingestion needs it again at once.
            self._run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self._session = _on_gpu(graph, options) if cuda else _on_processor(graph, options)

    def run(self, output: str, inputs: Mapping[str, npt.NDArray[Any]]) -> Floats:
        """Return an output of the graph, as `Runtime.run` does."""
        (values,) = self._session.run([output], dict(inputs), self._run_options)
        return np.asarray(values, np.float32)


def _on_processor(graph: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """Load the graph with its weights in the order of this processor, or else as it is.

    The order depends on the instructions, so there are files for each set of them.
    """

    def session(topology: Path, weights: Path | None = None) -> onnxruntime.InferenceSession:
        providers = ["CPUExecutionProvider"]
        return onnxruntime.InferenceSession(str(topology), options, providers=providers)

    sets = sorted(flag for flag in processor_flags() if flag.startswith(_VECTOR_SETS))
    if not sets:
        return session(graph)
    variant = hashlib.sha256(" ".join(sets).encode()).hexdigest()[:8]
    edition = f"{onnxruntime.__version__}-{_CONVERSION}"
    conversion = Conversion("onnxruntime", edition, ".onnx", _PREPACK, variant)
    return load(graph, conversion, session) or session(graph)


def _on_gpu(graph: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """Load a graph on a GPU; raise SettingsError where onnxruntime cannot.

    Without `enable_fallback=0` it would print so, and compute on the processor.
    """
    if CUDA not in onnxruntime.get_available_providers():
        raise SettingsError(
            "embedder.device is cuda, but the installed onnxruntime has no CUDA", hint=_HINT
        )
    with redirect_stdout(sys.stderr):  # it prints which it cannot find
        onnxruntime.preload_dlls()  # the libraries in NVIDIA's Python packages
    providers = [(CUDA, CUDA_OPTIONS)]
    unusable = SettingsError(
        "embedder.device is cuda, but onnxruntime found no usable GPU", hint=_HINT
    )
    try:
        session = onnxruntime.InferenceSession(
            str(graph), options, providers=providers, enable_fallback=0
        )
    except Exception as error:  # onnxruntime's own have no class in common
        raise unusable from error
    if CUDA not in session.get_providers():  # if libraries are missing, it still falls back
        raise unusable
    return session

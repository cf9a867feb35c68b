"""Chooses the fastest runtime for the device and the processor at hand.

In processor seconds, OpenVINO in bf16 takes half of what onnxruntime takes in fp32 where the
processor multiplies bf16 itself. Elsewhere it would compute in fp32 and gain a tenth at most.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from callslip.models.e5.runtimes.contract import Runtime
from callslip.models.e5.runtimes.processor import processor_flags

Device = Literal["cpu", "cuda"]
Kind = Literal["openvino bf16", "onnxruntime fp32", "onnxruntime cuda"]

BF16 = frozenset({"avx512_bf16", "amx_bf16"})
"""Linux's names of the instructions that multiply bf16, on x86-64."""


def runtime_kind(device: Device) -> Kind:
    """Return the fastest runtime that this machine has for the device."""
    if device == "cuda":
        return "onnxruntime cuda"
    return "openvino bf16" if processor_flags() & BF16 and find_spec("openvino") else _ANYWHERE


def load(kind: Kind, graph: Path, threads: int, at_once: int = 1) -> Runtime:
    """Load a graph in this runtime.

    An inference has `threads` threads. In OpenVINO, which needs memory for each inference, at most
    `at_once` run at once; in onnxruntime as many as there are threads that call it.
    """
    if kind == "openvino bf16":
        from callslip.models.e5.runtimes.open_vino import OpenVino  # only one of both is loaded

        return OpenVino(graph, threads, at_once)
    from callslip.models.e5.runtimes.onnx_runtime import OnnxRuntime

    return OnnxRuntime(graph, threads, cuda=kind == "onnxruntime cuda")


_ANYWHERE: Kind = "onnxruntime fp32"

"""Chooses the fastest runtime for the device and the processor at hand.

In processor seconds, OpenVINO in bf16 takes a third of what onnxruntime takes in fp32 on a
processor with AMX, half on one of AMD with AVX-512 BF16, and one and a half times as much on one of
Intel with AVX-512 BF16 alone, such as a virtual machine whose host hides AMX. Elsewhere it would
compute in fp32 and gain a tenth at most.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from callslip.models.e5.runtimes.contract import Runtime
from callslip.models.e5.runtimes.processor import processor_flags, processor_vendor

Device = Literal["cpu", "cuda"]
Kind = Literal["openvino bf16", "onnxruntime fp32", "onnxruntime cuda"]

AMX, AVX512 = "amx_bf16", "avx512_bf16"
"""Linux's names of the instructions that multiply bf16, on x86-64."""

AMD = "AuthenticAMD"


def runtime_kind(device: Device) -> Kind:
    """Return the fastest runtime that this machine has for the device."""
    if device == "cuda":
        return "onnxruntime cuda"
    return "openvino bf16" if _gains_from_bf16() and find_spec("openvino") else _ANYWHERE


def _gains_from_bf16() -> bool:
    """Whether the processor multiplies bf16 faster than fp32.

    With AVX-512 alone, processors of Intel do so at half the rate of fp32, those of AMD at twice.
    """
    flags = processor_flags()
    return AMX in flags or (AVX512 in flags and processor_vendor() == AMD)


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

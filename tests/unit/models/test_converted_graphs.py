"""The files that a runtime makes of a graph, without the runtime itself."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from callslip.models.e5.runtimes import onnx_runtime, open_vino
from callslip.models.e5.runtimes.converted import converted


class Converter:
    """Stands in for the process that converts, and counts its runs."""

    def __init__(self, error: Exception | None = None) -> None:
        self.runs, self.error = 0, error

    def __call__(self, command: Sequence[str], *, check: bool) -> None:
        self.runs += 1
        made = Path(command[-1])
        assert list(made.parent.iterdir()) == []
        made.with_suffix(".bin").write_bytes(b"weights")
        if self.error:
            raise self.error
        made.write_bytes(b"topology")


class Core:
    """Stands in for OpenVINO's core."""

    def read_model(self, *source: object) -> object:
        return source


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return tmp_path / "model.onnx"


def convert(graph: Path, edition: str = "2.0", variant: str = "") -> tuple[Path, Path]:
    return converted(graph, "openvino", edition, ".xml", "program", variant)


def test_files_are_made_once_and_again_where_the_weights_are_missing_or_empty(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converter = Converter()
    monkeypatch.setattr(subprocess, "run", converter)
    for _ in range(2):
        topology, weights = convert(graph)
    assert converter.runs == 1
    weights.unlink()
    assert convert(graph) == (topology, weights)
    weights.write_bytes(b"")
    convert(graph)
    assert converter.runs == 3
    assert weights.read_bytes() == b"weights"
    assert topology.read_bytes() == b"topology"


def test_what_a_killed_conversion_and_other_editions_left_is_removed(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", Converter())
    (graph.parent / "model-openvino.build").mkdir()
    (graph.parent / "model-openvino.build" / "half.bin").touch()
    other = ("model-openvino-1.0.xml", "model-openvino-1.0-a.bin", "model-openvino-2.0.1.bin")
    for name in (*other, "other-openvino-1.0.bin"):
        (graph.parent / name).touch()
    convert(graph)
    names = {file.name for file in graph.parent.iterdir() if file.suffix != ".lock"}
    assert names == {"model-openvino-2.0.xml", "model-openvino-2.0.bin", "other-openvino-1.0.bin"}


def test_the_files_of_each_processor_stay_beside_those_of_others(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converter = Converter()
    monkeypatch.setattr(subprocess, "run", converter)
    first, second = convert(graph, variant="-a"), convert(graph, variant="-b")
    assert convert(graph, variant="-a") == first != second
    assert converter.runs == 2


@pytest.mark.parametrize(
    "error", [OSError(28, "no space left"), subprocess.CalledProcessError(1, "python")]
)
def test_where_no_files_can_be_made_the_onnx_file_is_read(
    graph: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    monkeypatch.setattr(subprocess, "run", Converter(error))
    monkeypatch.setattr(onnx_runtime, "processor_flags", lambda: frozenset({"avx2"}))
    assert open_vino._read(ModuleType("vendor"), Core(), graph) == ((graph,), None)
    assert "model.onnx" in caplog.text
    assert onnx_runtime._prepacked(graph) == graph
    assert not list(graph.parent.glob("*.build"))


def test_on_an_unknown_processor_onnxruntime_reads_the_onnx_file(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_runtime, "processor_flags", frozenset)
    assert onnx_runtime._prepacked(graph) == graph
    assert not list(graph.parent.iterdir())


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux has the policy")
def test_where_the_system_refuses_the_policy_the_model_is_loaded_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert open_vino._in_thread(lambda: "model", idle=True) == "model"

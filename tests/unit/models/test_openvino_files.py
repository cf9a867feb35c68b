"""The files that the runtime OpenVINO makes of a graph, without OpenVINO itself."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from callslip.models.e5.runtimes import open_vino


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
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(open_vino, "version", lambda package: "2.0")
    return tmp_path / "model.onnx"


def test_files_are_made_once_and_again_where_the_weights_are_missing_or_empty(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converter = Converter()
    monkeypatch.setattr(subprocess, "run", converter)
    for _ in range(2):
        topology, weights = open_vino._converted(graph)
    assert converter.runs == 1
    weights.unlink()
    assert open_vino._converted(graph) == (topology, weights)
    weights.write_bytes(b"")
    open_vino._converted(graph)
    assert converter.runs == 3
    assert weights.read_bytes() == b"weights"
    assert topology.read_bytes() == b"topology"


def test_what_a_killed_conversion_and_other_versions_left_is_removed(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", Converter())
    (graph.parent / "model-openvino.build").mkdir()
    (graph.parent / "model-openvino.build" / "half.bin").touch()
    other = ("model-openvino-1.0-2.xml", "model-openvino-1.0-2.bin", "other-openvino-1.0.bin")
    for name in (*other, "model-openvino-2.0.bin"):
        (graph.parent / name).touch()
    open_vino._converted(graph)
    names = {file.name for file in graph.parent.iterdir() if file.suffix != ".lock"}
    assert names == {
        *("model-openvino-2.0-2.xml", "model-openvino-2.0-2.bin"),
        "other-openvino-1.0.bin",
    }


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
    assert open_vino._read(ModuleType("vendor"), Core(), graph) == ((graph,), None)
    assert "model.onnx" in caplog.text
    assert not (graph.parent / "model-openvino.build").exists()


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux has the policy")
def test_where_the_system_refuses_the_policy_the_model_is_loaded_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert open_vino._in_thread(lambda: "model", idle=True) == "model"

"""The files that a runtime makes of a graph, without the runtime itself."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import pytest

from callslip.models.e5.runtimes import open_vino
from callslip.models.e5.runtimes.converted import Conversion, converted, load

CONVERSION = Conversion("openvino", "2.0", ".xml", "program")


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


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"graph")
    return file


def convert(graph: Path, variant: str = "") -> tuple[Path, Path]:
    return converted(graph, replace(CONVERSION, variant=variant))


def test_files_are_made_once_and_again_where_the_weights_are_missing(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converter = Converter()
    monkeypatch.setattr(subprocess, "run", converter)
    for _ in range(2):
        topology, weights = convert(graph)
    assert converter.runs == 1
    weights.unlink()
    assert convert(graph) == (topology, weights)
    assert converter.runs == 2
    assert weights.read_bytes() == b"weights"


@pytest.mark.parametrize("content", [b"", b"wei", b"weighty", b"\xff\x00 no text"])
@pytest.mark.parametrize("name", ["bin", "xml", "crc32"])
def test_damaged_files_are_made_again_with_a_warning(
    graph: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    content: bytes,
) -> None:
    converter = Converter()
    monkeypatch.setattr(subprocess, "run", converter)
    topology, weights = convert(graph)
    topology.with_suffix(f".{name}").write_bytes(content)
    assert convert(graph) == (topology, weights)
    assert converter.runs == 2
    assert "model-openvino-2.0.xml or model-openvino-2.0.bin is damaged: made again" in caplog.text
    assert topology.read_bytes() == b"topology"
    assert weights.read_bytes() == b"weights"
    convert(graph)
    assert converter.runs == 2


def test_what_a_killed_conversion_and_other_editions_left_is_removed(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", Converter())
    (graph.parent / "model-openvino.build-1").mkdir()
    (graph.parent / "model-openvino.build-1" / "half.bin").touch()
    other = ("model-openvino-1.0.xml", "model-openvino-1.0-a.bin", "model-openvino-2.0.1.bin")
    for name in (*other, "other-openvino-1.0.bin"):
        (graph.parent / name).touch()
    convert(graph)
    made = {f"model-openvino-2.0.{suffix}" for suffix in ("xml", "bin", "crc32")}
    assert files_of(graph) == made | {"model.onnx", "other-openvino-1.0.bin"}


def test_the_files_of_each_processor_stay_beside_those_of_others(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converter = Converter()
    monkeypatch.setattr(subprocess, "run", converter)
    first, second = convert(graph, variant="a"), convert(graph, variant="b")
    assert convert(graph, variant="a") == first != second
    assert converter.runs == 2


@pytest.mark.parametrize(
    "error", [OSError(30, "read-only"), subprocess.CalledProcessError(1, "python")]
)
def test_where_no_files_can_be_made_nothing_is_left_and_a_warning_is_logged(
    graph: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    monkeypatch.setattr(subprocess, "run", Converter(error))
    assert load(graph, CONVERSION, lambda *files: files) is None
    assert "model.onnx" in caplog.text
    assert files_of(graph) == {"model.onnx"}
    monkeypatch.setattr(open_vino, "version", lambda package: "2.0")
    core = Mock(read_model=lambda *source: source)
    assert open_vino._read(ModuleType("vendor"), core, graph) == ((graph,), None)


def test_without_room_for_the_files_none_is_written(
    graph: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    converter = Converter()
    monkeypatch.setattr(subprocess, "run", converter)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Mock(free=3 * len(b"graph")))
    assert load(graph, CONVERSION, lambda *files: files) is None
    assert converter.runs == 0
    assert "No space left" in caplog.text


def test_files_that_cannot_be_used_stay_for_the_next_process(
    graph: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    converter = Converter()
    monkeypatch.setattr(subprocess, "run", converter)

    def use(topology: Path, weights: Path) -> bytes:
        if short_of_memory:
            raise RuntimeError("bad allocation")
        return weights.read_bytes()

    short_of_memory = True
    assert load(graph, CONVERSION, use) is None
    assert "model-openvino-2.0.xml cannot be used (RuntimeError)" in caplog.text
    short_of_memory = False
    assert load(graph, CONVERSION, use) == b"weights"
    assert converter.runs == 1


def files_of(graph: Path) -> set[str]:
    return {file.name for file in graph.parent.iterdir() if file.suffix != ".lock"}


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux has the policy")
def test_where_the_system_refuses_the_policy_the_model_is_loaded_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert open_vino._in_thread(lambda: "model", idle=True) == "model"

"""What the JSON file of a benchmark holds."""

import json
from pathlib import Path

from benchmarks.machine import FOLDER, ROOT, Figure, Record, git
from benchmarks.speed.bench import SHORT, figures
from benchmarks.speed.latency import Latency
from benchmarks.speed.memory import RoleMemory
from benchmarks.speed.throughput import Throughput


def test_a_record_has_the_facts_of_the_machine_and_every_repeat(tmp_path: Path) -> None:
    figure = Figure("one chunk: chain", "documents/s", [5.0, 5.5])
    file = Record().write(tmp_path / "new" / "bench.json", [figure], settings={"embedder": "e5"})
    record = json.loads(file.read_text())
    assert record["commit"] == git(ROOT, "rev-parse", "HEAD")
    assert isinstance(record["dirty"], bool)
    assert {"processor", "flags", "cores", "memory_gb"} <= record["machine"].keys()
    assert [len(record["load"][when]) for when in ("before", "after")] == [3, 3]
    assert {"python", "celery", "numpy", "openvino"} <= record["versions"].keys()
    assert record["began_at"] <= record["ended_at"]
    assert record["settings"] == {"embedder": "e5"}
    assert record["figures"] == [
        {"name": "one chunk: chain", "unit": "documents/s", "repeats": [5.0, 5.5]}
    ]


def test_the_folder_of_the_records_is_ignored_by_git() -> None:
    assert git(ROOT, "check-ignore", f"{FOLDER.name}/a.json") == f"{FOLDER.name}/a.json"


def test_every_figure_of_the_tables_is_recorded() -> None:
    made = figures(
        [
            Throughput(
                *(SHORT, 8, 1.0, 314.0, [5.0, 6.0], [10.0, 11.0]),
                processor=[{"ingest": 0.3}, {"ingest": 0.4, "api": 0.1}],
                alone_processor=[0.2, 0.1],
            )
        ],
        [Latency("idle", [9.0, 8.0], [3.0, 6.0], {"embed": [1.0, 5.0], "fetch": [2.0, 1.0]})],
        [RoleMemory("ingest", (777.0, 754.0))],
    )
    repeats = {figure.name: list(figure.repeats) for figure in made}
    assert repeats == {
        "one chunk: chain": [5.0, 6.0],
        "one chunk: embedder alone": [10.0, 11.0],
        "one chunk: chunks of a document": [1.0],
        "one chunk: tokens of a chunk": [314.0],
        "one chunk: processor of embedder alone": [0.2, 0.1],
        "one chunk: processor of api": [0.0, 0.1],
        "one chunk: processor of ingest": [0.3, 0.4],
        "search idle: at the server": [9.0, 8.0],
        "search idle: sum of the parts": [3.0, 6.0],
        "search idle: part: embed": [1.0, 5.0],
        "search idle: part: fetch": [2.0, 1.0],
        "memory: ingest": [777.0, 754.0],
    }

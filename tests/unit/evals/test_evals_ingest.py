"""The benchmark of a folder: which files it takes, what it compares."""

import json
from pathlib import Path

import pytest

from benchmarks.speed import extraction
from benchmarks.speed.folders import gather
from benchmarks.speed.ingest import Memory
from callslip.errors import EvaluationError


def test_files_come_from_every_folder_about_as_many_and_from_a_corpus(tmp_path: Path) -> None:
    files, judged, scratch = tmp_path / "files", tmp_path / "judged", tmp_path / "scratch"
    for folder in (files, judged, scratch):
        folder.mkdir()
    for n in range(5):
        (files / f"{n}.txt").write_text(str(n))
    (files / ".hidden").write_text("x")
    lines = [{"_id": str(n), "title": f"Title {n}", "text": f"text {n}"} for n in range(50)]
    (judged / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = gather([files, judged], 8, scratch)
    assert [p.parent.name for p in found] == ["files", "scratch"] * 4
    assert (scratch / "judged-00003.txt").read_text() == "Title 3\ntext 3"
    assert len(list(scratch.iterdir())) == 4, "no more is written than is taken"
    assert len(gather([files, judged], 20, scratch)) == 20
    with pytest.raises(EvaluationError):
        gather([scratch / "nothing"], 8, scratch)


def test_extraction_is_compared_by_format_and_refused_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Leave lasts long. " * 200)
    (tmp_path / "b.html").write_text(f"<html><body><h1>Leave</h1>{'<p>It lasts.</p>' * 99}</body>")
    (tmp_path / "c.pdf").write_bytes(b"%PDF-1.7 broken")
    found = {ratio.media_type: ratio for ratio in extraction.measure(sorted(tmp_path.iterdir()))}
    assert set(found) == {"text/plain", "text/html"}
    assert all(ratio.files == 1 and ratio.ours > 0 < ratio.alone for ratio in found.values())


def test_peaks_of_memory_are_of_each_process() -> None:
    assert Memory().peaks([(5, 1), (4, 3, 2), (1,)]) == [5, 3, 2]
    assert Memory().peaks([]) == []

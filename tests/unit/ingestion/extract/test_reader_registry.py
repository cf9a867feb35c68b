"""Readers of formats: built-in ones by media type, and those that other packages register."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile, EmptyFile, SettingsError, UnsupportedType
from callslip.ingestion.extract import extract, registry, sniff
from callslip.ingestion.isolation.process import Extractor

LIMITS = ExtractSettings()
MODULE = """
from callslip.ingestion.values import ExtractedText

def read(data, limits):
    if not data.startswith(b"NOTE "):
        raise ValueError("no note")
    text = data[5:].decode()
    return ExtractedText(text, "application/x-note", text.partition("\\n")[0])
"""
ENTRIES = """[callslip.readers]
note = outside_notes:read
lost = outside_notes_that_are_not_there:read
pdf = outside_notes:read
md = outside_notes:read
"""


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path with a package that registers readers."""
    (tmp_path / "outside_notes.py").write_text(MODULE)
    metadata = tmp_path / "outside_notes-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-notes\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry._entries.cache_clear()
    yield tmp_path
    registry._entries.cache_clear()


def test_every_media_type_has_a_built_in_reader_that_exists() -> None:
    named = {kind for kind in (*sniff.TEXT_NAMES.values(), *sniff.BINARY_NAMES.values()) if kind}
    assert named | {sniff.PLAIN} == set(registry.BUILT_IN)
    for name in registry.BUILT_IN.values():
        module, _, function = name.rpartition(".")
        assert callable(
            getattr(import_module(f"callslip.ingestion.extract.readers.{module}"), function)
        )


def test_a_reader_of_another_package_reads_files_by_the_end_of_their_name(outside: Path) -> None:
    text = extract(b"NOTE Leave\nIt is long.", "leave.NOTE", LIMITS)
    assert (text.text, text.media_type, text.title) == (
        "Leave\nIt is long.",
        "application/x-note",
        "Leave",
    )


def test_without_the_package_the_same_file_is_read_by_its_content() -> None:
    assert extract(b"NOTE Leave", "leave.note", LIMITS).media_type == sniff.PLAIN
    with pytest.raises(UnsupportedType):
        extract(b"\x00\x01NOTE", "leave.note", LIMITS)


def test_the_child_process_has_it_too(outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(outside), prepend=":")
    with Extractor(LIMITS) as extractor:
        assert extractor.extract(b"NOTE Leave", "a.note").text == "Leave"


def test_built_in_readers_are_not_replaced(outside: Path) -> None:
    assert extract(b"# Leave\n\nIt is long.", "a.md", LIMITS).media_type == sniff.MARKDOWN
    with pytest.raises(BrokenFile):
        extract(b"NOTE Leave", "a.pdf", LIMITS)


def test_a_file_that_it_cannot_read_is_broken_and_an_empty_one_is_empty(outside: Path) -> None:
    with pytest.raises(BrokenFile, match="ValueError"):
        extract(b"Leave", "a.note", LIMITS)
    with pytest.raises(EmptyFile):
        extract(b"", "a.note", LIMITS)


def test_a_reader_that_cannot_be_imported_is_named(outside: Path) -> None:
    with pytest.raises(SettingsError, match=r"reader of \.lost files"):
        extract(b"x", "a.lost", LIMITS)

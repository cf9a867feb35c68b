"""Manifests: what is wrong is said with its line before anything is sent."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.cli.shared.manifest import Entry, read_manifest
from callslip.errors import ManifestError

ROOT = Path(__file__).parents[3]


def manifest(folder: Path, *lines: object) -> Path:
    """A manifest of these lines; what is no text is written as JSON."""
    file = folder / "m.jsonl"
    output = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    file.write_text("\n".join(output), encoding="utf-8")
    return file


def complaint(folder: Path, *lines: object) -> str:
    """What is said of a manifest, with the folder cut out."""
    file = manifest(folder, *lines)
    with pytest.raises(ManifestError) as caught:
        read_manifest(file, "main")
    return caught.value.detail.replace(f"{folder}/", "")


def test_the_manifest_of_the_examples_names_every_example() -> None:
    lines = read_manifest(ROOT / "jobs" / "examples.jsonl", "main")
    named = {line.path.resolve() for line in lines}
    assert named == set((ROOT / "examples" / "documents").iterdir())


def test_the_page_about_manifests_defines_every_field() -> None:
    page = (ROOT / "jobs" / "README.md").read_text(encoding="utf-8")
    assert [name for name in Entry.model_fields if f"`{name}`" not in page] == []


def test_a_line_becomes_a_name_a_place_and_properties(tmp_path: Path) -> None:
    line = {
        "path": "acts/one.pdf",
        "collection": "law",
        "doc_type": "law",
        "lang": "ko",
        "valid_from": "2026-01-01",
        "valid_to": "2026-07-01",
        "properties": {"year": 2026},
    }
    (found,) = read_manifest(manifest(tmp_path, "", line, ""), "main")
    assert (found.name, found.collection, found.line) == ("acts/one.pdf", "law", 2)
    assert found.path == tmp_path / "acts" / "one.pdf"
    assert found.entry.valid_from == date(2026, 1, 1)
    assert found.entry.all_properties() == {
        "doc_type": "law",
        "document_lang": "ko",
        "valid_from": "2026-01-01",
        "valid_to": "2026-07-01",
        "year": 2026,
    }


def test_a_path_that_leads_out_is_known_by_its_file_alone(tmp_path: Path) -> None:
    lines = [{"path": "../up/a.txt"}, {"path": str(tmp_path / "b.txt")}, {"path": "~/c.txt"}]
    found = read_manifest(manifest(tmp_path, *lines), "main")
    assert [line.name for line in found] == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("nonsense", "m.jsonl:1: no JSON: Expecting value at column 1"),
        ("[1]", "m.jsonl:1: no JSON object"),
        ('{"path": "a", "path": "b"}', "m.jsonl:1: 'path' is there twice"),
        ('{"path": "a", "properties": {"x": NaN}}', "m.jsonl:1: no JSON: NaN is no number"),
        ({"path": ""}, "m.jsonl:1: path: String should have at least 1 character"),
        ({}, "m.jsonl:1: path: Field required"),
        ({"path": "a", "colection": "x"}, "m.jsonl:1: colection: Extra inputs"),
        ({"path": "a", "collection": "no/slash"}, "m.jsonl:1: collection: "),
        ({"path": "a", "name": "../../etc/passwd"}, "the name has the path part '..'"),
        ({"path": "a", "name": "x\\..\\y"}, "the name has the path part '..'"),
        ({"path": "a\0b"}, "path holds a control character"),
        ({"path": "a", "valid_from": "1.1.2026"}, "m.jsonl:1: valid_from: is no date such as"),
        ({"path": "a", "valid_from": 20260101}, "m.jsonl:1: valid_from: is no date such as"),
        ({"path": "a", "valid_from": "2026-02-30"}, "m.jsonl:1: valid_from: "),
        (
            {"path": "a", "valid_from": "2026-07-01", "valid_to": "2026-01-01"},
            "valid_to 2026-01-01 is not after valid_from 2026-07-01",
        ),
        (
            {"path": "a", "valid_from": "2026-07-01", "valid_to": "2026-07-01"},
            "is not after valid_from",
        ),
        (
            {"path": "a", "doc_type": "law", "properties": {"doc_type": "faq"}},
            "'doc_type' is given twice, as a field and in properties",
        ),
        ({"path": "a", "properties": {"lang": "ko"}}, "property 'lang' is a field of every chunk"),
        ({"path": "a", "properties": {"x": {"y": 1}}}, "property 'x' is neither a string"),
        ({"path": "a", "allow_duplicate": "yes"}, "m.jsonl:1: allow_duplicate: "),
        ({"path": "a", "tenant": "x" * 65}, "m.jsonl:1: tenant: "),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_a_wrong_line_is_told_with_its_place(tmp_path: Path, line: object, output: str) -> None:
    assert output in complaint(tmp_path, line)


def test_every_wrong_line_is_told_at_once_up_to_a_limit(tmp_path: Path) -> None:
    output = complaint(tmp_path, *[{"path": "a", "x": 1}] * 30, {"path": "good"}).splitlines()
    assert output[0].startswith("m.jsonl:1: x: ")
    assert output[19].startswith("m.jsonl:20: ")
    assert output[20:] == ["and 10 more"]


@pytest.mark.parametrize(
    "second",
    [
        {"path": "b.txt", "name": "n"},
        {"path": "a.txt", "name": "n", "doc_type": "law"},
        {"path": "a.txt", "name": "n", "title": "Another"},
        {"path": "a.txt", "name": "n", "valid_from": "2026-01-01"},
    ],
)
def test_lines_that_contradict_each_other_are_refused(
    tmp_path: Path, second: dict[str, Any]
) -> None:
    output = complaint(tmp_path, {"path": "a.txt", "name": "n"}, second)
    assert output.startswith("m.jsonl:2: 'n' stands in line 1 already")


def test_the_same_line_twice_is_one(tmp_path: Path) -> None:
    lines = [{"path": "a.txt", "name": "n"}, {"name": "n", "path": "./a.txt"}]
    assert len(read_manifest(manifest(tmp_path, *lines), "main")) == 1


def test_one_name_in_two_collections_is_no_contradiction(tmp_path: Path) -> None:
    lines = [{"path": "a.txt"}, {"path": "a.txt", "collection": "other"}]
    assert len(read_manifest(manifest(tmp_path, *lines), "main")) == 2


def test_names_that_are_kept_alike_contradict_each_other(tmp_path: Path) -> None:
    lines = [{"path": "a.txt", "name": "Cafe\u0301"}, {"path": "b.txt", "name": "Caf\u00e9"}]
    assert "stands in line 1 already" in complaint(tmp_path, *lines)


def test_a_byte_order_mark_is_no_text_and_other_encodings_are_named(tmp_path: Path) -> None:
    file = tmp_path / "m.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"path": "a.txt"}\r\n')
    assert len(read_manifest(file, "main")) == 1
    file.write_bytes(b'{"path": "a.txt"}\n{"path": "\xb0\xa1.txt"}\n')
    with pytest.raises(ManifestError, match=":2: the line is not UTF-8"):
        read_manifest(file, "main")


def test_an_empty_manifest_and_an_endless_line_are_refused(tmp_path: Path) -> None:
    assert "has no line" in complaint(tmp_path, "")
    assert "longer than a line can be" in complaint(tmp_path, "x" * 1_000_001)


@given(text=st.text())
def test_no_line_whatever_is_in_it_ends_otherwise(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("manifest") / "m.jsonl"
    file.write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(ManifestError):
        read_manifest(file, "main")
